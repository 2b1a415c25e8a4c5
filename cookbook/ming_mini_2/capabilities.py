"""What the next Ming-mini can do, as its checkpoint declares it; each half adds its part.

The keys are fields of `sglang_omni.models.capabilities`. They describe what the recipe teaches;
whether the trained model does it is for the evaluation to say, before it is released.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from sglang_omni.models import capabilities
from sglang_omni.models.ming.tiny.files import write_json

STARTERS = (
    "What is 17 + 25?",
    "What day comes after Monday?",
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
    "speech_instructions": True,
}


def declare(checkpoint: Path, abilities: Mapping[str, object]) -> None:
    """Write capabilities over those of the checkpoint, which may be none yet."""
    path = checkpoint / capabilities.FILE
    declared = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    write_json(path, {**declared, **abilities})
