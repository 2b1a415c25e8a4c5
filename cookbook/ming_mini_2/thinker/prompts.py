"""What the server's routes ask in front of a recording."""

from dataclasses import replace

from cookbook.ming_mini.capabilities import ABILITIES
from cookbook.ming_mini.thinker.speech_tasks import TRANSCRIBE
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.models.ming.capabilities import RELEASED
from sglang_omni.pipeline.transcribe import build_transcription_prompt, build_translation_prompt

LANGUAGE = "en"


def route_prompts(capabilities: Capabilities) -> tuple[str, ...]:
    """Return the prompts of `/v1/audio/transcriptions` and `/v1/audio/translations`.

    They are those without hints, and with the language where the model takes it.
    """
    prompts = (
        build_transcription_prompt(capabilities),
        build_transcription_prompt(capabilities, LANGUAGE),
        build_translation_prompt(capabilities),
    )
    return tuple(dict.fromkeys(prompts))


OWN = replace(
    RELEASED,
    name=str(ABILITIES["name"]),
    transcription_prompt=str(ABILITIES["transcription_prompt"]),
    transcription_languages=("en",),
    transcription_hints=False,
    translation_prompt=None,
)
"""The abilities that the packed checkpoint declares, as far as these prompts depend on them."""
ROUTE_PROMPTS = tuple(dict.fromkeys((*route_prompts(OWN), *route_prompts(RELEASED))))
"""The prompts of the routes for the bundled model, and for a model that declares nothing."""
WRITTEN = (
    *TRANSCRIBE,
    *("What is said here?", "Write this down.", "What do you hear?", "What did I say?"),
    *("Please transcribe this recording.", "What is said in the recording?"),
)
"""How a user asks in a chat."""
