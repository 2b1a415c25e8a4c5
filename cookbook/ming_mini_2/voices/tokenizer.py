"""The talker's tokenizer: that of Ming-mini, with a token for every fixed part of a caption.

A caption is 300 characters of JSON, of which a few are the instruction. Each key with its most
frequent value is one token, so that a caption takes about a dozen rows.
"""

from tokenizers import AddedToken, Tokenizer

from cookbook.ming_mini.tokenizer import build_tokenizer as build_mini_tokenizer
from cookbook.ming_mini_2.voices.manner import CHOICES
from sglang_omni.models.ming.speech.caption import Caption, render_caption

_MARK = "\0"
FEATURES = ("dialect", "style", "speed", "pitch", "volume", "emotion")


def build_tokenizer() -> Tokenizer:
    """Build the tokenizer."""
    tokenizer = build_mini_tokenizer()
    tokenizer.add_tokens([AddedToken(part, normalized=False) for part in caption_parts()])
    return tokenizer


def caption_parts() -> list[str]:
    """Return the parts of captions that are one token each, as `render_caption` writes them."""
    keys = _keys()
    values = {name: CHOICES[name] for name in ("speed", "pitch", "volume", "emotion")}
    chosen = [
        _strip(render_caption(Caption(**{name: value})), keys[name])
        for name in values
        for value in values[name]
    ]
    absent = [f"{key}null, " for key in keys.values()]
    opening, ending = _ends(keys)
    # Tokens match the longest first only if they begin alike, so whole pairs come before keys.
    return [opening, ending, *absent, *chosen, *keys.values()]


def _keys() -> dict[str, str]:
    """Return what stands before each feature's value: '"风格": '."""
    whole = render_caption(Caption(**{name: f"{_MARK}{name}" for name in FEATURES}))
    keys = {}
    for name in FEATURES:
        before = whole[: whole.index(f'"\\u0000{name}"')]
        keys[name] = before[before.rindex(", ") + 2 :]
    return keys


def _strip(caption: str, key: str) -> str:
    """Return a key with its value from a caption: '"语速": "慢速", '."""
    start = caption.index(key)
    return caption[start : caption.index(", ", start) + 2]


def _ends(keys: dict[str, str]) -> tuple[str, str]:
    """Return what stands before the first feature, and after the last one's value."""
    neutral = render_caption(Caption())
    last = f"{keys[FEATURES[-1]]}null, "
    return neutral[: neutral.index(keys[FEATURES[0]])], neutral.split(last, 1)[1]
