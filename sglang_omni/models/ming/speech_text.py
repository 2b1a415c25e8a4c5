"""Ming's text front end, captions and descriptions as a `SpeechText`."""

from collections.abc import Mapping

from sglang_omni.models.capabilities import SpeechTask
from sglang_omni.models.ming.speech.caption import (
    MUSIC_FIELDS,
    MUSIC_TASK,
    SOUND_SAMPLING,
    SOUND_TASK,
    Caption,
    render_caption,
)
from sglang_omni.models.ming.text.duration import compute_reference_limit_s
from sglang_omni.models.ming.text.front import MingTextFrontEnd, warm_up
from sglang_omni.models.speech_text import SpeechStyle
from sglang_omni.protocol.errors import InvalidRequest

DESCRIPTIONS: dict[SpeechTask, str | None] = {
    "speech": None,
    "music": MUSIC_TASK,
    "sound": SOUND_TASK,
}


class MingSpeechText:
    """Implements `SpeechText`."""

    def open_front_end(self) -> MingTextFrontEnd:
        """See `SpeechText`."""
        return MingTextFrontEnd()

    def warm_up(self) -> None:
        """Load the Chinese grammars and the English number words (two seconds)."""
        warm_up()

    def style(
        self, task: SpeechTask, instructions: Mapping[str, str | None] | None = None
    ) -> SpeechStyle:
        """See `SpeechText`."""
        instruction = None if instructions is None else render_caption(Caption(**instructions))
        if task != "sound":
            return SpeechStyle(DESCRIPTIONS[task], instruction)
        cfg, sigma, temperature = SOUND_SAMPLING
        return SpeechStyle(DESCRIPTIONS[task], instruction, cfg, sigma, temperature)

    def description(self, task: SpeechTask, text: str) -> str:
        """See `SpeechText`."""
        if task != "music":
            return text
        missing = [field.strip(": ") for field in MUSIC_FIELDS if field not in text]
        if missing:
            raise InvalidRequest(
                "input: a description of music must have the form 'Genre: ... Mood: ... "
                f"Instrument: ... Theme: ... Duration: 60s.'; missing: {', '.join(missing)}",
                param="input",
            )
        # The model was trained with a blank in front of a description of music.
        return f" {text.strip()}"

    def max_description_s(self, text: str) -> float:
        """Return the limit of the reference, which depends on the length of the text."""
        return compute_reference_limit_s(text)
