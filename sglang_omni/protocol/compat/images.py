"""Rules for the bodies of the image routes."""

from typing import Any

from sglang_omni.protocol.compat.conversions import (
    ignore,
    make_error,
    merge_object,
    rename,
    set_default,
)
from sglang_omni.protocol.compat.field_rules import (
    Change,
    FieldRules,
    Fields,
    Mapped,
    Refused,
    Rule,
    list_own_names,
)
from sglang_omni.protocol.compat.reasons import (
    BOTH_PEERS,
    GATEWAYS,
    NO_USERS,
    NOT_STORED,
    OPENAI,
    OPENROUTER,
)
from sglang_omni.protocol.images import (
    ConversationImageFields,
    ImageEditBody,
    ImageGenerationBody,
)

# OpenRouter's names of resolutions, as sides of a square.
_NAMED_RESOLUTIONS = {"0.5K": 512, "1K": 1024}


def convert_width(value: Any, fields: Fields) -> Change:
    """Convert width and height to a size."""
    if fields.get("height") is None:
        raise make_error("width", "requires height; or send size")
    return Change({} if fields.get("size") else {"size": f"{value}x{fields['height']}"})


def convert_height(value: Any, fields: Fields) -> Change:
    """Drop the height, which `convert_width` has read."""
    if fields.get("size") is None:
        raise make_error("height", "requires width; or send size")
    return Change()


def convert_image(value: Any, fields: Fields) -> Change:
    """Convert one image, or a list of them."""
    if fields.get("images") is not None:
        raise make_error("image", "is given twice: as image and as images")
    return Change({"images": value if isinstance(value, list) else [value]})


def convert_image_size(value: Any, fields: Fields) -> Change:
    """Convert OpenRouter's name of a resolution, such as 1K."""
    if value not in _NAMED_RESOLUTIONS:
        raise make_error("image_size", f"must be one of {', '.join(_NAMED_RESOLUTIONS)}")
    return Change(set_default(fields, ("resolution",), _NAMED_RESOLUTIONS[value]))


DRAWING_RULES: tuple[Rule, ...] = (
    Mapped("width", BOTH_PEERS, "`size`, with `height`", convert_width),
    Mapped("height", BOTH_PEERS, "`size`, with `width`", convert_height),
    *(
        Mapped(name, BOTH_PEERS, "`steps`", rename(name, "steps"))
        for name in ("num_inference_steps", "image_gen_steps")
    ),
    *(
        Mapped(name, BOTH_PEERS, "`cfg`, which counts in the same way", rename(name, "cfg"))
        for name in ("guidance_scale", "image_gen_cfg")
    ),
    Mapped("negative", GATEWAYS, "`negative_prompt`", rename("negative", "negative_prompt")),
    Mapped("image_size", OPENROUTER, "`resolution`: 512 for 0.5K, 1024 for 1K", convert_image_size),
    *ignore(OPENAI, "the server does not moderate", moderation="low"),
)
_COMMON: tuple[Rule, ...] = (
    Mapped("extra_body", GATEWAYS, "fields of the body", merge_object("extra_body")),
    *DRAWING_RULES,
    *ignore(OPENAI, "the model has one style; describe another in the prompt", "style"),
    *ignore(GATEWAYS, NO_USERS, "user"),
    *ignore(GATEWAYS, NOT_STORED, "metadata"),
)

GENERATION_RULES = FieldRules(list_own_names(ImageGenerationBody), _COMMON)
CHAT_IMAGE_RULES = FieldRules(list_own_names(ConversationImageFields), DRAWING_RULES)
EDIT_RULES = FieldRules(
    list_own_names(ImageEditBody),
    (
        Mapped("image", OPENAI, "`images`", convert_image),
        Refused("mask", OPENAI, "masks are not taken; describe the place in the prompt"),
        *ignore(OPENAI, "the whole image is always seen", "input_fidelity"),
        *_COMMON,
    ),
)
