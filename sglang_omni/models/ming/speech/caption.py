"""How the talker is told to speak: the JSON caption of its instruct mode, and the forms of its
other tasks. Plain data; no torch."""

import json
from dataclasses import dataclass

MUSIC_TASK = "Please generate music based on the following description.\n"
SOUND_TASK = "Please generate audio events based on given text.\n"
# A text with all of these describes music.
MUSIC_FIELDS = ("Genre: ", "Mood: ", "Instrument: ", "Theme: ", "Duration: ")
# Strength of guidance, and scale and temperature of the sampler's noise, as the released demo has
# them for sounds. Everything else uses the defaults.
SOUND_SAMPLING = (4.5, 0.3, 2.5)

# The values that the released examples show, under names that are easier to type. Others are
# handed on as they are written.
EMOTIONS = {"happy": "高兴"}
DIALECTS = {"cantonese": "广粤话"}
SPEEDS = {"slow": "慢速", "medium": "中", "fast": "快速"}
LEVELS = {"low": "低", "medium": "中", "high": "高"}


@dataclass(frozen=True)
class Caption:
    """What an instruction may say; None leaves it to the model."""

    emotion: str | None = None
    dialect: str | None = None
    style: str | None = None
    speed: str | None = None
    pitch: str | None = None
    volume: str | None = None


def render_caption(caption: Caption) -> str:
    """The caption as the model was trained to read it: every key in this order, nulls kept."""
    entry = {
        "序号": 1,
        "说话人": "speaker_1",
        "方言": _named(caption.dialect, DIALECTS),
        "风格": caption.style,
        "语速": _named(caption.speed, SPEEDS),
        "基频": _named(caption.pitch, LEVELS),
        "音量": _named(caption.volume, LEVELS),
        "情感": _named(caption.emotion, EMOTIONS),
        "BGM": dict.fromkeys(("Genre", "Mood", "Instrument", "Theme", "ENV", "SNR")),
        "IP": None,
    }
    return json.dumps({"audio_sequence": [entry]}, ensure_ascii=False)


def _named(value: str | None, names: dict[str, str]) -> str | None:
    return None if value is None else names.get(value.lower(), value)
