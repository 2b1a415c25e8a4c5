"""Rules for the bodies of the image routes."""

from typing import Any

from sglang_omni.protocol.compat.conversions import ignore, make_error, merge_object, rename
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
)
from sglang_omni.protocol.images import ImageEditBody, ImageGenerationBody


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


_COMMON: tuple[Rule, ...] = (
    Mapped("extra_body", GATEWAYS, "fields of the body", merge_object("extra_body")),
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
    *ignore(OPENAI, "the model has one style; describe another in the prompt", "style"),
    *ignore(OPENAI, "the server does not moderate", moderation="low"),
    *ignore(GATEWAYS, NO_USERS, "user"),
    *ignore(GATEWAYS, NOT_STORED, "metadata"),
)

GENERATION_RULES = FieldRules(list_own_names(ImageGenerationBody), _COMMON)
EDIT_RULES = FieldRules(
    list_own_names(ImageEditBody),
    (
        Mapped("image", OPENAI, "`images`", convert_image),
        Refused("mask", OPENAI, "masks are not taken; describe the place in the prompt"),
        *ignore(OPENAI, "the whole image is always seen", "input_fidelity"),
        *_COMMON,
    ),
)
