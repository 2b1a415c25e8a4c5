"""The voices of a talker engine: presets, cloned voices, and the encoding of new ones."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext

import torch

from sglang_omni.caching.lru_cache import LruCache
from sglang_omni.engines.runtime.worker import StepResults
from sglang_omni.engines.speech.contract import ClonedVoice, EncodedVoice, VoiceRequest
from sglang_omni.models.speech import SpeechModel, Voice
from sglang_omni.protocol.errors import OmniError, UnknownVoice

MAX_CLONED_VOICES = 256
"""Cloned voices whose embeddings are cached. Thirty seconds of speech take 250 KB."""


class VoiceCache:
    """Finds the prompt of a voice. All presets are kept, and cloned voices in an LRU cache."""

    def __init__(self, model: SpeechModel, max_clones: int = MAX_CLONED_VOICES) -> None:
        self._model = model
        self._clones: LruCache[tuple[str, str | None], Voice] = LruCache(max_clones)
        self._no_voice = model.no_voice()

    def find(self, voice: str | ClonedVoice | None) -> Voice:
        """Return the prompt of a voice.

        Raises:
            UnknownVoice: No preset has this name.
            OSError: The process that owns the cloned voice is gone.
        """
        if voice is None:
            return self._no_voice
        if isinstance(voice, ClonedVoice):
            return self._cloned(voice)
        if voice not in self._model.voices:
            known = ", ".join(self._model.voices)
            raise UnknownVoice(f"unknown voice {voice!r}; known: {known}", param="voice")
        return self._model.voices[voice]

    def _cloned(self, voice: ClonedVoice) -> Voice:
        key = (voice.key, voice.text)
        prompt = self._clones.get(key)
        if prompt is None:
            prompt = _read_voice(voice, self._model)
            self._clones.put(key, prompt)
        return prompt


def _read_voice(voice: ClonedVoice, model: SpeechModel) -> Voice:
    values = torch.from_numpy(voice.array.read(voice.layout).copy())
    return model.read_voice(voice.key, voice.text, values, voice.latents)


class VoiceEncoder:
    """Encodes recordings as voices in a thread, one at a time, so that no step waits.

    On a GPU the thread uses its own CUDA stream. The step loop owns the encoder and collects its
    results.
    """

    def __init__(self, model: SpeechModel) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="voices")
        self._pending: dict[str, Future[EncodedVoice]] = {}
        device = model.device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    @property
    def is_busy(self) -> bool:
        """Return whether a recording waits or is being encoded."""
        return bool(self._pending)

    def start(self, request_id: str, request: VoiceRequest) -> None:
        """Queue a recording."""
        self._pending[request_id] = self._thread.submit(self._encode, request)

    def cancel(self, request_id: str) -> bool:
        """Drop a recording. Return False if there is none of this id.

        A recording that is being encoded is finished, which takes milliseconds on a GPU, and its
        result is dropped.
        """
        future = self._pending.pop(request_id, None)
        return future is not None and (future.cancel() or True)

    def collect(self, timeout_s: float = 0.0) -> StepResults:
        """Return the voices and errors since the last call. Wait up to `timeout_s` for one."""
        if timeout_s:
            wait(self._pending.values(), timeout_s, return_when="FIRST_COMPLETED")
        done_ids = [request_id for request_id, future in self._pending.items() if future.done()]
        return [(request_id, _get_result(self._pending.pop(request_id))) for request_id in done_ids]

    def close(self) -> None:
        """Cancel the queued recordings."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _encode(self, request: VoiceRequest) -> EncodedVoice:
        with torch.cuda.stream(self._stream) if self._stream else nullcontext():
            return encode_recording(request, self._model)


def encode_recording(request: VoiceRequest, model: SpeechModel) -> EncodedVoice:
    """Encode a recording and write the voice to the request's array."""
    samples = torch.from_numpy(request.recording.read(request.layout).copy())
    made = model.encode_voice(request.key, samples, request.sample_rate)
    return EncodedVoice(request.voice.write(made.values), made.latents, made.speaker)


def _get_result(future: "Future[EncodedVoice]") -> EncodedVoice | Exception:
    error = future.exception()
    if error is None:
        return future.result()
    return error if isinstance(error, Exception) else OmniError(str(error))
