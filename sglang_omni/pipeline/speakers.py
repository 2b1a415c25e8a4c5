"""Who speaks a request: voices are resolved, and each turn gets its speaker."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.speech.contract import ClonedVoice
from sglang_omni.models.speech_text import ReadingOptions, SpeechText
from sglang_omni.models.written_words import WrittenText
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.request import SpeechRequest, Voice
from sglang_omni.pipeline.speech import Speaker, seconds_to_patches
from sglang_omni.pipeline.timestamps.fragment_timer import FragmentTimer

ResolvedVoice = str | ClonedVoice | None
ResolveVoice = Callable[[Voice, str | None], Awaitable[ResolvedVoice]]


async def resolve_preset(voice: Voice, tenant: str | None = None) -> str:
    """Return the name of a preset voice, for a pipeline that does not clone voices."""
    assert voice.source is None, "this pipeline has preset voices only"
    return voice.name


@dataclass(frozen=True)
class SpeakerFactory:
    """What all speakers of a pipeline share.

    Attributes:
        resolve_voice: Turns a request's voice into the talker's.
        speech_text: The model's text front end.
        sample_rate: The talker's sample rate, in Hz.
        frame_s: Seconds of speech in one patch of the talker.
        languages: ISO 639-1 codes of the languages that the model speaks, if known.
    """

    resolve_voice: ResolveVoice
    speech_text: SpeechText
    sample_rate: int
    frame_s: float
    languages: tuple[str, ...] = ()

    async def resolve(self, voice: Voice | None, tenant: str | None) -> ResolvedVoice:
        """Return the voice to pass to the talker.

        Raises `InvalidRequest` for a recording that cannot be used.
        """
        if voice is None:
            return None
        with stage("voice"):
            return await self.resolve_voice(voice, tenant)

    def create(
        self, voice: Voice, reading: ReadingOptions, talker: Engine, resolved: ResolvedVoice
    ) -> Speaker:
        """Return the speaker of an answer."""
        return Speaker(
            talker,
            self.speech_text,
            self.frame_s,
            resolved,
            voice.seed,
            self.sample_rate,
            reading=reading,
            languages=self.languages,
        )

    def create_for_turn(
        self, request: SpeechRequest, index: int, talker: Engine, resolved: ResolvedVoice
    ) -> Speaker:
        """Return the speaker of one turn of a request."""
        turn = request.turns[index]
        return replace(
            self.create(turn.voice, turn.reading, talker, resolved),
            style=turn.style,
            max_patches=seconds_to_patches(request.max_seconds, self.frame_s),
            timer=self._create_timer(request, index),
        )

    def _create_timer(self, request: SpeechRequest, index: int) -> FragmentTimer | None:
        if request.timestamps == "none":
            return None
        turn, has_words = request.turns[index], request.timestamps == "word"
        voice, written = turn.voice.name or None, WrittenText(turn.written)
        return FragmentTimer(self.sample_rate, has_words, written, voice, index)
