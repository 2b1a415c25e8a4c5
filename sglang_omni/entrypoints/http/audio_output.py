"""The choice of the audio format, shared by chat and speech."""

from dataclasses import dataclass
from functools import partial

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.media.encode import OutputAudioEncoder, get_sample_rates
from sglang_omni.media.tempo import convert_time
from sglang_omni.media.wav import CHANNELS
from sglang_omni.pipeline.request import TimedSegment
from sglang_omni.protocol.audio import AudioFormat
from sglang_omni.protocol.errors import InvalidRequest

# OpenAI's clients assume 24 kHz for pcm; opus does not support 44.1 kHz.
DEFAULT_RATES = {"pcm": 24_000, "opus": 48_000}


@dataclass(frozen=True)
class AudioOutputChoice:
    """Format and rates (Hz) of the audio in one response."""

    format: AudioFormat
    sample_rate: int
    source_rate: int
    speed: float = 1.0

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that a client needs to play audio without a file header."""
        return {"X-Sample-Rate": str(self.sample_rate), "X-Channels": str(CHANNELS)}

    def time_segment(self, segment: TimedSegment) -> TimedSegment:
        """Return a segment with its times in the audio of the response."""
        convert = partial(convert_time, sample_rate=self.source_rate, speed=self.speed)
        return segment.convert_times(convert)

    def make_encoder(self, streaming: bool) -> OutputAudioEncoder:
        """Return a new encoder for one response."""
        return OutputAudioEncoder(
            self.format, self.source_rate, self.sample_rate, streaming, self.speed
        )


def choose_output(
    audio_format: AudioFormat,
    sample_rate: int | None,
    backend: Backend,
    speed: float = 1.0,
    param: str = "sample_rate",
) -> AudioOutputChoice:
    """Return the audio format of a response.

    Args:
        audio_format: Requested format.
        sample_rate: Requested rate in Hz. The default is 24 kHz for pcm, 48 kHz for opus, and the
            synthesis rate for other formats.
        backend: Gives the synthesis rate.
        speed: Playback speed.
        param: Name of the rate's field, for errors.

    Raises:
        InvalidRequest: The format does not support the rate.
    """
    default_rate = DEFAULT_RATES.get(audio_format, backend.sample_rate)
    rate, supported_rates = sample_rate or default_rate, get_sample_rates(audio_format)
    if supported_rates and rate not in supported_rates:
        listed = ", ".join(map(str, supported_rates))
        raise InvalidRequest(f"{param}: {audio_format} supports {listed}, not {rate}", param=param)
    return AudioOutputChoice(audio_format, rate, backend.sample_rate, speed)
