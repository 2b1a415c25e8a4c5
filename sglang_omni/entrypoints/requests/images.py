"""Conversion of the fields of the image routes to a request of the pipeline."""

import secrets
from collections.abc import Sequence

from sglang_omni.config.image_options import ImageOptions
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.requests.metadata import RequestMetadata, require_model
from sglang_omni.models.image import Size
from sglang_omni.pipeline.image_request import ImageRequest
from sglang_omni.pipeline.request import MediaPart, Message, TextPart
from sglang_omni.protocol.body import MAX_SEED
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.images import DrawingFields, ImageFields, ImageQuality, parse_size

# Random seeds are short, because users copy them.
MAX_RANDOM_SEED = 2**32
# OpenAI's names of qualities.
NAMED_QUALITIES: dict[ImageQuality, ImageQuality] = {
    "auto": "medium",
    "standard": "medium",
    "hd": "high",
}


def build_image_request(
    body: ImageFields,
    references: Sequence[MediaPart],
    backend: Backend,
    metadata: RequestMetadata,
) -> ImageRequest:
    """Return the request of a body; `references` are the images to edit.

    Raises:
        ImagesUnavailable: The server draws no images.
        ModelNotFound: The model is not served.
        InvalidRequest: A field is beyond the server's limits, or contradicts another.
    """
    backend.require_images()
    require_model(body.model, backend)
    options = backend.image_options
    check_answer_form(body, streams=body.stream)
    if body.progress and not body.stream:
        raise InvalidRequest("progress: requires stream", param="progress")
    if body.stream and body.response_format == "url":
        raise InvalidRequest(
            "response_format: a stream carries the images as b64_json", param="response_format"
        )
    seeds = choose_seeds(body.seed, body.n, options)
    if len(references) > options.max_references:
        raise InvalidRequest(
            f"image: this server takes at most {options.max_references} images", param="image"
        )
    messages = (Message("user", (*references, TextPart(body.prompt))),)
    source = 0 if references else None
    return apply_drawing_fields(body, messages, source, seeds, backend, metadata)


def apply_drawing_fields(
    fields: DrawingFields,
    messages: tuple[Message, ...],
    source: int | None,
    seeds: tuple[int, ...],
    backend: Backend,
    metadata: RequestMetadata,
) -> ImageRequest:
    """Return the request of images that `messages` describe, drawn as `fields` say.

    Args:
        fields: The fields.
        messages: The conversation.
        source: Index of the image to change among those of `messages`, if any.
        seeds: The seed of each image.
        backend: The backend that draws.
        metadata: The metadata of the request.

    Raises:
        InvalidRequest: A field is beyond the server's limits, or contradicts another.
    """
    options, size = backend.image_options, parse_size(fields.size)
    cfg = options.cfg if fields.cfg is None else fields.cfg
    return ImageRequest(
        **vars(metadata),
        messages=messages,
        seeds=seeds,
        source=source,
        size=size,
        aspect=_choose_aspect(fields, size, is_edit=source is not None),
        resolution=_choose_resolution(fields, size, backend),
        steps=choose_steps(fields, options),
        cfg=cfg,
        negative_prompt=_choose_negative_prompt(fields, cfg),
        previews=fields.partial_images,
    )


def check_answer_form(fields: DrawingFields, *, streams: bool) -> None:
    """Check that the fields about the form of the answer fit each other.

    Raises `InvalidRequest`, naming the field.
    """
    if fields.background == "transparent":
        raise InvalidRequest(
            "background: images are opaque; transparency is not made", param="background"
        )
    if fields.partial_images and not streams:
        raise InvalidRequest("partial_images: requires stream", param="partial_images")
    if fields.output_format == "png" and fields.output_compression != 100:
        raise InvalidRequest(
            "output_compression: a PNG loses nothing; ask for jpeg or webp",
            param="output_compression",
        )


def choose_seeds(seed: int | None, count: int, options: ImageOptions) -> tuple[int, ...]:
    """Return the seed of each image: the given one and the next ones, or random ones.

    Raises `InvalidRequest` if there are more than the server draws for a request.
    """
    if count > options.max_n:
        raise InvalidRequest(
            f"n: this server draws at most {options.max_n} images a request", param="n"
        )
    if seed is None:
        return tuple(secrets.randbelow(MAX_RANDOM_SEED) for _ in range(count))
    return tuple((seed + index) % (MAX_SEED + 1) for index in range(count))


def name_quality(quality: ImageQuality) -> ImageQuality:
    """Return the quality as the answer names it: low, medium or high."""
    return NAMED_QUALITIES.get(quality, quality)


def choose_steps(fields: DrawingFields, options: ImageOptions) -> int:
    """Return the number of steps: the given one, or half or five thirds of the default.

    Raises `InvalidRequest` beyond the server's limit.
    """
    if fields.steps is not None:
        if fields.steps > options.max_steps:
            raise InvalidRequest(
                f"steps: this server does at most {options.max_steps}", param="steps"
            )
        return fields.steps
    by_quality = {"low": max(1, options.steps // 2), "high": options.steps * 5 // 3}
    return min(by_quality.get(name_quality(fields.quality), options.steps), options.max_steps)


def _choose_negative_prompt(fields: DrawingFields, cfg: float) -> str | None:
    """Return the negative prompt, None for a blank one.

    Raises `InvalidRequest` for one without guidance, which would have no effect.
    """
    if fields.negative_prompt is None or not fields.negative_prompt.strip():
        return None
    if cfg <= 1:
        raise InvalidRequest(
            "negative_prompt: has no effect without guidance; it needs a cfg above 1",
            param="negative_prompt",
        )
    return fields.negative_prompt


def _choose_aspect(fields: DrawingFields, size: Size | None, *, is_edit: bool) -> float | None:
    """Return the requested ratio of width to height. An edit has its ratio from its size."""
    if size is None:
        return fields.aspect_ratio
    if fields.aspect_ratio is not None:
        raise InvalidRequest("aspect_ratio: size gives the ratio already", param="aspect_ratio")
    height, width = size
    return width / height if is_edit else None


def _choose_resolution(fields: DrawingFields, size: Size | None, backend: Backend) -> int:
    """Return the resolution: the given one, that of the size, or the nearest to the server's limit.

    Raises `InvalidRequest` beyond the server's limit.
    """
    largest = backend.image_options.max_resolution
    if fields.resolution is not None:
        field, side = "resolution", fields.resolution
    elif size is not None:
        field, side = "size", backend.fit_resolution(size)
    else:
        return backend.fit_resolution((largest, largest))
    if side > largest:
        raise InvalidRequest(
            f"{field}: this server draws at most as many pixels as {largest}x{largest}", param=field
        )
    return side
