"""The bodies of the image routes, and the fields of images elsewhere.

The routes check rules between fields.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import (
    Body,
    FormBody,
    ModelName,
    NonEmpty,
    RequestPriority,
    Seed,
    Timeout,
)

MAX_PROMPT_CHARACTERS = 32_000
MAX_SIDE = 4096
MAX_IMAGES = 10
MAX_PARTIAL_IMAGES = 3
MAX_REFERENCES = 16
_SIZE = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")
_RATIO = re.compile(r"([0-9.]{1,9}):([0-9.]{1,9})")

ImageQuality = Literal["auto", "low", "medium", "high", "standard", "hd"]
ImageFileFormat = Literal["png", "jpeg", "webp"]
ImageSourceChoice = Literal["latest", "first", "none"]


def parse_size(size: str) -> tuple[int, int] | None:
    """Return height and width of a size such as "1024x768", which has the width first.

    Returns None for "auto".
    """
    found = _SIZE.fullmatch(size)
    return (int(found[2]), int(found[1])) if found else None


def _check_size(size: str) -> str:
    parsed = parse_size(size)
    if size != "auto" and (parsed is None or max(parsed) > MAX_SIDE):
        raise PydanticCustomError(
            "size",
            "must be 'auto' or WIDTHxHEIGHT, such as 1024x768, with sides up to {limit}",
            {"limit": MAX_SIDE},
        )
    return size


def _to_aspect(value: Any) -> Any:
    """Return the number of a ratio such as "16:9"."""
    try:
        if isinstance(value, str):
            found = _RATIO.fullmatch(value.strip())
            return float(found[1]) / float(found[2]) if found else float(value)
    except (ValueError, ZeroDivisionError):
        raise PydanticCustomError(
            "aspect_ratio", "must be a ratio of width to height, such as '16:9' or 1.78"
        ) from None
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _to_source(value: Any) -> Any:
    """Return the URL of an image that is given as an object, as in a chat or OpenAI's edits."""
    inner = value.get("image_url") if isinstance(value, dict) else value
    if isinstance(inner, dict):
        inner = inner.get("url")
    if inner is None:
        raise PydanticCustomError("image", "must be a URL, or an object with an image_url")
    return inner


def _check_prompt(prompt: str) -> str:
    if not prompt.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return prompt


ImageSize = Annotated[
    str,
    AfterValidator(_check_size),
    Field(
        description="WIDTHxHEIGHT or auto. It sets the ratio of the sides and the nearest of the "
        "model's resolutions; the answer says the size of the image"
    ),
]
AspectRatio = Annotated[
    float,
    BeforeValidator(_to_aspect, json_schema_input_type=str | float),
    Field(gt=0, le=100, description="Width to height, such as '16:9' or 1.78; an extension"),
]
ImageSource = Annotated[
    NonEmpty,
    BeforeValidator(_to_source, json_schema_input_type=str | dict[Literal["image_url"], str]),
    Field(description="http(s) URL or data URI, or an object that has it as `image_url`"),
]


class DrawingFields(Body):
    """How an image is drawn, and the form of its file."""

    size: ImageSize = "auto"
    aspect_ratio: AspectRatio | None = None
    resolution: Annotated[
        int | None,
        Field(
            ge=256,
            le=2048,
            description="Side of a square image; the model draws the nearest of its resolutions; "
            "an extension",
        ),
    ] = None
    quality: Annotated[
        ImageQuality, Field(description="How many steps are done, unless steps is given")
    ] = "auto"
    steps: Annotated[
        int | None, Field(ge=1, le=1000, description="Number of steps; an extension")
    ] = None
    cfg: Annotated[
        float | None,
        Field(
            ge=0,
            le=20,
            description="Guidance: how strongly the image follows the prompt; an extension",
        ),
    ] = None
    negative_prompt: Annotated[
        str | None,
        Field(
            max_length=MAX_PROMPT_CHARACTERS,
            description="What guidance leads away from; an extension",
        ),
    ] = None
    seed: Annotated[
        Seed | None,
        Field(description="Seed of the first image; each further one has the next; an extension"),
    ] = None
    output_format: ImageFileFormat = "png"
    output_compression: Annotated[
        int, Field(ge=0, le=100, description="Quality of a JPEG or WebP file in percent")
    ] = 100
    background: Annotated[
        Literal["auto", "opaque", "transparent"],
        Field(description="Images have no transparency, so transparent is refused"),
    ] = "auto"
    partial_images: Annotated[
        int,
        Field(
            ge=0, le=MAX_PARTIAL_IMAGES, description="How often an image is shown while it is drawn"
        ),
    ] = 0


class ConversationImageFields(DrawingFields):
    """How an image that belongs to a conversation is drawn."""

    source: Annotated[
        ImageSourceChoice,
        Field(
            description="Which image of the conversation is changed: that of the latest message "
            "with images, the first one of all, or none, so that a new one is drawn; an extension"
        ),
    ] = "latest"


class ImageFields(DrawingFields):
    """What the image routes have in common."""

    model: ModelName = None
    prompt: Annotated[
        str,
        Field(min_length=1, max_length=MAX_PROMPT_CHARACTERS),
        AfterValidator(_check_prompt),
    ]
    n: Annotated[int, Field(ge=1, le=MAX_IMAGES, description="Number of images")] = 1
    response_format: Literal["b64_json", "url"] = "b64_json"
    stream: bool = False
    progress: Annotated[
        bool, Field(description="With stream, an event after each step; an extension")
    ] = False
    priority: RequestPriority = "normal"
    timeout: Timeout | None = None


class ImageGenerationBody(ImageFields):
    """The body of `POST /v1/images/generations`."""


class ImageEditBody(ImageFields):
    """The body of `POST /v1/images/edits` in JSON."""

    images: Annotated[
        list[ImageSource],
        Field(
            min_length=1,
            max_length=MAX_REFERENCES,
            description="The image to edit, and others that the model sees",
        ),
    ]


class ImageEditForm(ImageFields, FormBody):
    """The text fields of `POST /v1/images/edits` as a form."""

    model_config = ConfigDict(extra="forbid", strict=False, allow_inf_nan=False, frozen=True)
