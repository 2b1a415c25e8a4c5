"""Instructions for a manner of speech, as clients give them and as the product renders them.

A client sends fields (`{"speed": "slow"}`) or a free text, which is the field `style`. The product
turns both into the JSON caption of the released model (`sglang_omni.models.ming.speech.caption`),
and the talker sees exactly that.
"""

from collections.abc import Mapping, Sequence
from random import Random

from cookbook.ming_mini.sentences import Split
from cookbook.ming_mini_2.voices.manner import Manner, manner_to_json
from sglang_omni.models.ming.speech.caption import Caption, render_caption

FREE_TEXT_SHARE = 0.5

# Adverbs and phrases that ask for a value, by feature and value.
ADVERBS: Mapping[tuple[str, str], Sequence[str]] = {
    ("speed", "slow"): ("slowly", "at a slow pace", "unhurriedly", "more slowly", "very slowly"),
    ("speed", "medium"): ("at a normal speed", "at a normal pace", "not too fast"),
    ("speed", "fast"): ("fast", "quickly", "at a fast pace", "faster", "very fast", "hurriedly"),
    ("pitch", "low"): ("in a low voice", "in a deep voice", "with a low pitch", "lower"),
    ("pitch", "medium"): ("at a normal pitch", "in your usual voice"),
    ("pitch", "high"): ("in a high voice", "with a high pitch", "at a higher pitch", "higher"),
    ("volume", "low"): ("quietly", "softly", "at a low volume", "more quietly"),
    ("volume", "medium"): ("at a normal volume", "neither loud nor quiet"),
    ("volume", "high"): ("loudly", "at a high volume", "louder", "with a loud voice"),
    ("emotion", "happy"): ("happily", "cheerfully", "in a happy voice", "joyfully"),
    ("emotion", "sad"): ("sadly", "in a sad voice", "sorrowfully", "with sadness"),
    ("style", "whisper"): ("in a whisper", "whispering", "as a whisper"),
    ("style", "monotone"): ("in a monotone", "without melody", "like a robot", "flatly"),
    ("style", "lively"): ("in a lively way", "with a lot of melody", "expressively", "vividly"),
}
FRAMES: Mapping[Split, Sequence[str]] = {
    "train": (
        "{}", "{}, please", "speak {}", "please speak {}", "say it {}", "talk {}", "read it {}",
        "say this {}", "please read this {}", "could you speak {}?", "i want you to speak {}",
        "you speak {}", "the speaker talks {}",
    ),
    "held_out": ("now speak {}", "please say that {}", "can you talk {}?", "speak to me {}"),
}  # fmt: skip
"""Free texts by split: the evaluation asks in sentences that no training has."""
JOINTS = (" and ", ", ")
# What the field `style` may hold besides a free text.
STYLE_NAMES: Mapping[str, Sequence[str]] = {
    "whisper": ("whisper", "whispering"),
    "monotone": ("monotone", "flat"),
    "lively": ("lively", "expressive"),
}
# The released caption's own words go unchanged; `render_caption` knows the English ones.
CHINESE_EMOTIONS: Mapping[str, str] = {"happy": "高兴", "sad": "悲伤"}


def draw_instruction(manner: Manner, rng: Random, split: Split = "train") -> str:
    """Return the rendered caption that asks for a manner, with fields or a free text.

    Raises:
        ValueError: The manner asks for nothing.
    """
    if manner.is_neutral:
        raise ValueError("a neutral manner has no instruction")
    if rng.random() < FREE_TEXT_SHARE:
        return render_caption(Caption(style=draw_free_text(manner, rng, split)))
    return render_caption(draw_caption(manner, rng))


def draw_caption(manner: Manner, rng: Random) -> Caption:
    """Return a manner as fields."""
    values = manner_to_json(manner)
    if style := values.get("style"):
        values["style"] = rng.choice(STYLE_NAMES[style])
    if (emotion := values.get("emotion")) and rng.random() < 0.5:
        values["emotion"] = CHINESE_EMOTIONS[emotion]
    return Caption(**values)


def draw_free_text(manner: Manner, rng: Random, split: Split) -> str:
    """Return a manner as a free text of one split."""
    values = list(manner_to_json(manner).items())
    rng.shuffle(values)
    asked = rng.choice(JOINTS).join(rng.choice(ADVERBS[value]) for value in values)
    return _vary_form(rng.choice(FRAMES[split]).format(asked), rng)


def _vary_form(text: str, rng: Random) -> str:
    """Return a text with or without a capital and a full stop."""
    if rng.random() < 0.7:
        text = text[:1].upper() + text[1:]
    return text if text.endswith("?") or rng.random() < 0.4 else text + "."
