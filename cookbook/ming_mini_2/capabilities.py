"""What the next Ming-mini can do, as its checkpoint declares it; each half adds its part.

The keys are fields of `sglang_omni.models.capabilities`. They describe what the recipe teaches;
whether the trained model does it is for the evaluation to say, before it is released.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from sglang_omni.models import capabilities
from sglang_omni.models.ming.tiny.files import write_json

STARTERS = (
    "What is 17 + 25?",
    "What is the capital of France?",
    "How do you spell river?",
    "Tell me about the sea.",
    "What can you do?",
)
THINKER_ABILITIES: Mapping[str, object] = {
    "transcription_languages": ["en"],
    "transcription_hints": False,
    # A few small phrases are translated in chats; recordings are not.
    "translation_prompt": None,
    "video_sound": False,
    "starter_prompts": list(STARTERS),
}
SPEECH_ABILITIES: Mapping[str, object] = {
    "name": "Ming-mini",
    # Mandarin is not taught: requests for it are refused by name.
    "speech_languages": ["en"],
    "speech_tasks": ["speech"],
    # The texts that the talker learns have no others, and each ends in one.
    "speech_marks": ".,?!-'",
    # A recording that only primes the history is gone from it after 1.3 s, and the voice with it.
    "instructions_keep_prompt": True,
}
INSTRUCTION_FIELDS: Sequence[str] = ("emotion", "style", "speed", "pitch", "volume")
"""The fields of instructions that are taught; dialects are not."""
LEAVABLE = ("instructions", *INSTRUCTION_FIELDS, "cloning")
"""What may turn out not to be learnt: all instructions, one of their fields, or clones."""


def speech_abilities(without: Collection[str] = ()) -> dict[str, object]:
    """Return what the speaking half declares if it did not learn some of `LEAVABLE`."""
    learnt = [name for name in INSTRUCTION_FIELDS if name not in without]
    return {
        **SPEECH_ABILITIES,
        "speech_instructions": bool(learnt) and "instructions" not in without,
        "instruction_fields": learnt,
        "voice_cloning": "cloning" not in without,
    }


def declare(checkpoint: Path, abilities: Mapping[str, object]) -> None:
    """Write capabilities over those of the checkpoint, which may be none yet."""
    path = checkpoint / capabilities.FILE
    declared = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    write_json(path, {**declared, **abilities})
