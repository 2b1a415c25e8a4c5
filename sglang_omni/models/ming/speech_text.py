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
from sglang_omni.models.ming.text.front import NormalizingFrontEnd
from sglang_omni.models.ming.text.reference.front import ReferenceFrontEnd
from sglang_omni.models.speech_text import (
    DEFAULT_READING,
    ReadingOptions,
    SpeechStyle,
    TextFrontEnd,
    preview_by_rules,
)
from sglang_omni.models.written_words import WrittenText
from sglang_omni.normalization.language import to_language
from sglang_omni.normalization.normalizer import build_normalizer
from sglang_omni.normalization.preview import Preview
from sglang_omni.protocol.errors import InvalidRequest

DESCRIPTIONS: dict[SpeechTask, str | None] = {
    "speech": None,
    "music": MUSIC_TASK,
    "sound": SOUND_TASK,
}


class MingSpeechText:
    """Implements `SpeechText`."""

    def open_front_end(
        self, options: ReadingOptions = DEFAULT_READING, written: WrittenText | None = None
    ) -> TextFrontEnd:
        """See `SpeechText`. The reference's rules do not tell how they read each form."""
        if options.front_end == "reference":
            return ReferenceFrontEnd()
        is_plain = options.normalization == "none"
        normalizer = None if is_plain else build_normalizer(options.lexicon)
        return NormalizingFrontEnd(normalizer, to_language(options.language), written)

    def preview(self, text: str, options: ReadingOptions = DEFAULT_READING) -> Preview:
        """See `SpeechText`. Only the server's own rules tell how they read each form."""
        if options.uses_rules:
            return preview_by_rules(text, options)
        return Preview(" ".join(self.open_front_end(options).split_fragments(text)))

    def warm_up(self) -> None:
        """Compile the rules. The reference's grammars are loaded when they are first needed."""
        for _ in self.open_front_end().split_fragments("The 1st of 20. 第 1 个。"):
            pass

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
