"""Prompts that say how the talker speaks.

They are the JSON caption of its instruct mode, and the task descriptions of music and sounds. Plain
data; no torch.
"""

import json
from dataclasses import dataclass

MUSIC_TASK = "Please generate music based on the following description.\n"
SOUND_TASK = "Please generate audio events based on given text.\n"
# A text that contains all of these describes music.
MUSIC_FIELDS = ("Genre: ", "Mood: ", "Instrument: ", "Theme: ", "Duration: ")
# Guidance strength, noise scale and noise temperature that the released demo uses for sounds.
# All other tasks use the defaults.
SOUND_SAMPLING = (4.5, 0.3, 2.5)

# Aliases for the values that the released examples use. Other values are passed on unchanged.
EMOTIONS = {"happy": "高兴"}
DIALECTS = {"cantonese": "广粤话"}
SPEEDS = {"slow": "慢速", "medium": "中", "fast": "快速"}
LEVELS = {"low": "低", "medium": "中", "high": "高"}


@dataclass(frozen=True)
class Caption:
    """Attributes that an instruction can set; None leaves one to the model."""

    emotion: str | None = None
    dialect: str | None = None
    style: str | None = None
    speed: str | None = None
    pitch: str | None = None
    volume: str | None = None


def render_caption(caption: Caption) -> str:
    """Render the caption as the model was trained on it: all keys in this order, nulls kept."""
    entry = {
        "序号": 1,
        "说话人": "speaker_1",
        "方言": _resolve_alias(caption.dialect, DIALECTS),
        "风格": caption.style,
        "语速": _resolve_alias(caption.speed, SPEEDS),
        "基频": _resolve_alias(caption.pitch, LEVELS),
        "音量": _resolve_alias(caption.volume, LEVELS),
        "情感": _resolve_alias(caption.emotion, EMOTIONS),
        "BGM": dict.fromkeys(("Genre", "Mood", "Instrument", "Theme", "ENV", "SNR")),
        "IP": None,
    }
    return json.dumps({"audio_sequence": [entry]}, ensure_ascii=False)


def _resolve_alias(value: str | None, aliases: dict[str, str]) -> str | None:
    return None if value is None else aliases.get(value.lower(), value)
