"""What a checkpoint can do. Routes, page and documentation follow it.

A checkpoint says it in `sglang_omni.json`, beside `config.json`: an object with fields of
`Capabilities`. What the file leaves out is as in the released model of the family.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import pydantic_core
from pydantic import ConfigDict, TypeAdapter, ValidationError

from sglang_omni.protocol.errors import CheckpointError

FILE = "sglang_omni.json"

SpeechTask = Literal["speech", "music", "sound"]
InstructionField = Literal["emotion", "dialect", "style", "speed", "pitch", "volume"]
"""What `instructions` may ask for; a free text is a style."""

# What clients have no use for.
_PRIVATE = (
    "transcription_prompt",
    "translation_prompt",
    "speech_marks",
    "instructions_keep_prompt",
)

LANGUAGE_NAMES = {"en": "English", "zh": "Chinese"}


@dataclass(frozen=True)
class Capabilities:
    """Abilities and prompts of one checkpoint. Languages are ISO 639-1 codes.

    Attributes:
        name: What to call the model in a sentence.
        speech_languages: Languages that it speaks.
        speech_tasks: What the talker makes of a text.
        speech_instructions: Whether speech follows `instructions` (style, emotion, pitch, ...).
        instruction_fields: Which of their fields it follows, if it does.
        voice_cloning: Whether it speaks in the voice of a recording.
        speech_marks: The punctuation, comma and full stop among it, that texts to speak are
            rewritten in, with a mark at the end of each; None if it takes any text.
        instructions_keep_prompt: Whether the talker is given the words and the sound of a voice's
            recording under `instructions` too. Otherwise the recording only primes its history.
        transcription_prompt: What the thinker is asked in front of a recording.
        transcription_languages: Languages that it writes down; None where that is not known.
        transcription_hints: Whether that prompt may go on with a language and words to expect.
        translation_prompt: What the thinker is asked to put a recording into English; None if it
            does not translate.
        starter_prompts: First messages that it answers well.
        video_sound: Whether it hears the sound of a video, as an audio clip after the pictures.
        image_output: Whether it draws images.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    speech_languages: tuple[str, ...]
    speech_tasks: tuple[SpeechTask, ...]
    speech_instructions: bool
    transcription_prompt: str
    transcription_languages: tuple[str, ...] | None
    transcription_hints: bool
    starter_prompts: tuple[str, ...]
    translation_prompt: str | None = None
    video_sound: bool = False
    image_output: bool = False
    instruction_fields: tuple[InstructionField, ...] = get_args(InstructionField)
    voice_cloning: bool = True
    speech_marks: str | None = None
    instructions_keep_prompt: bool = False

    @property
    def followed_fields(self) -> tuple[InstructionField, ...]:
        """Return the fields of `instructions` that speech follows."""
        return self.instruction_fields if self.speech_instructions else ()

    def public(self) -> dict[str, Any]:
        """Return what clients may know, as JSON."""
        return {key: value for key, value in asdict(self).items() if key not in _PRIVATE}


_ADAPTER = TypeAdapter(Capabilities)


def read_capabilities(checkpoint: Path, released: Capabilities) -> Capabilities:
    """Return what the checkpoint in a folder can do: `released`, where it does not say otherwise.

    Raises `CheckpointError`, naming the field, for a file that is not as it should be.
    """
    path = checkpoint / FILE
    if not path.exists():
        return released
    try:
        given = pydantic_core.from_json(path.read_bytes())
        return _ADAPTER.validate_python({**asdict(released), **given})
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise CheckpointError(f"{path}: {place}: {problem['msg']}") from None
    except (ValueError, TypeError):
        raise CheckpointError(f"{path} must hold a JSON object") from None


def language_names(codes: tuple[str, ...]) -> str:
    """Return languages as words: "Chinese and English"."""
    return join_words([LANGUAGE_NAMES.get(code, code) for code in codes])


def join_words(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: "speed, pitch and volume"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
