"""Images in answers: which chats may have one, and the requests that draw them."""

from dataclasses import replace

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.requests.field_names import FieldNames
from sglang_omni.entrypoints.requests.images import (
    apply_drawing_fields,
    check_answer_form,
    choose_seeds,
)
from sglang_omni.entrypoints.requests.metadata import RequestMetadata
from sglang_omni.pipeline.image_conversation import (
    choose_source,
    keep_latest_images,
    require_images_only,
)
from sglang_omni.pipeline.image_request import ImageRequest
from sglang_omni.pipeline.request import ChatRequest, Message
from sglang_omni.protocol.chat import ChatBody
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.images import ConversationImageFields

# What the fields of an image are called in the body of a chat.
CHAT_IMAGE_NAMES = FieldNames(
    {
        "prompt": "messages",
        **{name: f"image.{name}" for name in ConversationImageFields.model_fields},
    }
)


def check_image_answer(body: ChatBody, backend: Backend) -> None:
    """Check that the server can answer a chat with an image, if it asks for one.

    Raises `InvalidRequest`, naming the field.
    """
    if not body.wants_image:
        if body.image is not None:
            raise InvalidRequest("image: requires 'image' in modalities", param="image")
        return
    if not backend.capabilities.image_output:
        name = backend.capabilities.name
        raise InvalidRequest(
            f"modalities: {name} draws no images on this server", param="modalities"
        )
    with CHAT_IMAGE_NAMES.in_errors():
        check_answer_form(body.image_fields, streams=body.stream)
    if not body.wants_words:
        _check_image_alone(body)


def _check_image_alone(body: ChatBody) -> None:
    """Check that an answer without words is not asked for what only words have."""
    unused = {
        "tools": bool(body.tools) and body.tool_choice.type != "none",
        "logprobs": body.logprobs,
        "response_format": body.response_format.type != "text",
    }
    for name, is_given in unused.items():
        if is_given:
            raise InvalidRequest(f"{name}: requires 'text' in modalities", param=name)


def build_chat_images(
    body: ChatBody, chats: list[ChatRequest], backend: Backend
) -> list[ImageRequest]:
    """Return the request of the image of each choice. Raises `InvalidRequest`, naming the field.

    `chats` are the requests of the choices. Their images have consecutive seeds.
    """
    fields, chat = body.image_fields, chats[0]
    seed = body.seed if fields.seed is None else fields.seed
    seeds = choose_seeds(seed, len(chats), backend.image_options)
    metadata = RequestMetadata(chat.id, chat.tenant, chat.priority, chat.timeout_s)
    with CHAT_IMAGE_NAMES.in_errors():
        first = build_conversation_image(fields, chat.messages, seeds[:1], backend, metadata)
    return [
        replace(first, id=choice.id, seeds=(own_seed,))
        for choice, own_seed in zip(chats, seeds, strict=True)
    ]


def build_conversation_image(
    fields: ConversationImageFields,
    messages: tuple[Message, ...],
    seeds: tuple[int, ...],
    backend: Backend,
    metadata: RequestMetadata,
) -> ImageRequest:
    """Return the request of images that a conversation describes.

    Of its images the model sees the latest ones, up to the server's limit. Raises
    `InvalidRequest`, naming the field.
    """
    require_images_only(messages)
    kept = keep_latest_images(messages, backend.image_options.max_references)
    source = choose_source(kept, fields.source)
    return apply_drawing_fields(fields, kept, source, seeds, backend, metadata)
