"""The voices of a talker engine: presets, those that requests bring, and how new ones are made."""

from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext

import numpy as np
import torch

from sglang_omni.engines.runtime.worker import StepResults
from sglang_omni.engines.speech.contract import ClonedVoice, EncodedVoice, VoiceRequest
from sglang_omni.models.ming.speech.loading import SpeechModel
from sglang_omni.models.ming.speech.voices import (
    VoicePrompt,
    build_empty_voice,
    build_voice_prompt,
    encode_voice,
)
from sglang_omni.protocol.errors import OmniError, UnknownVoice

CLONES = 256
"""Cloned voices whose embeddings are kept; thirty seconds take a quarter of a megabyte."""


class VoiceCache:
    """Finds the prompt of a voice. Presets stay; of cloned voices the latest used are kept."""

    def __init__(self, model: SpeechModel, most: int = CLONES) -> None:
        self._model, self._most = model, most
        self._clones: OrderedDict[tuple[str, str | None], VoicePrompt] = OrderedDict()
        self._nobody = build_empty_voice(model.talker)

    def find(self, voice: str | ClonedVoice | None) -> VoicePrompt:
        """The prompt of a voice. Raises `UnknownVoice` for a name that is no preset's, `OSError`
        when the process that brought the voice is gone."""
        if voice is None:
            return self._nobody
        if isinstance(voice, ClonedVoice):
            return self._cloned(voice)
        if voice not in self._model.voices:
            known = ", ".join(self._model.voices)
            raise UnknownVoice(f"unknown voice {voice!r}; known: {known}", param="voice")
        return self._model.voices[voice]

    def _cloned(self, voice: ClonedVoice) -> VoicePrompt:
        name = (voice.key, voice.text)
        if name not in self._clones:
            self._clones[name] = _read(voice, self._model)
            if len(self._clones) > self._most:
                self._clones.popitem(last=False)
        self._clones.move_to_end(name)
        return self._clones[name]


def _read(voice: ClonedVoice, model: SpeechModel) -> VoicePrompt:
    values = torch.from_numpy(voice.array.read(voice.layout).copy())
    size = voice.latents * model.talker.config.latent_dim
    latents = values[:size].unflatten(0, (voice.latents, -1))
    vector = values[size:] if len(values) > size and model.speaker_encoder is not None else None
    return build_voice_prompt(voice.key, voice.text, latents, vector, model.talker)


class VoiceEncoder:
    """Makes voices of recordings on a thread of its own, so that no step waits for one.

    On a card the thread has a stream of its own. Owned by the step loop, which asks for what is
    done; one recording is encoded at a time.
    """

    def __init__(self, model: SpeechModel) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="voices")
        self._under_way: dict[str, Future[EncodedVoice]] = {}
        device = model.talker.stop_head.weight.device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    @property
    def busy(self) -> bool:
        """Whether a recording is being encoded, or waits for it."""
        return bool(self._under_way)

    def begin(self, request_id: str, request: VoiceRequest) -> None:
        """Take a recording in."""
        self._under_way[request_id] = self._thread.submit(self._make, request)

    def cancel(self, request_id: str) -> bool:
        """Forget a recording; False if it is none of these. One that is being encoded ends unheard:
        it takes milliseconds on a card."""
        future = self._under_way.pop(request_id, None)
        return future is not None and (future.cancel() or True)

    def done(self, patience_s: float = 0.0) -> StepResults:
        """What has been made since, or gone wrong; waits up to `patience_s` for the first."""
        if patience_s:
            wait(self._under_way.values(), patience_s, return_when="FIRST_COMPLETED")
        ended = [name for name, future in self._under_way.items() if future.done()]
        return [(name, _result(self._under_way.pop(name))) for name in ended]

    def close(self) -> None:
        """Begin nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _make(self, request: VoiceRequest) -> EncodedVoice:
        with torch.cuda.stream(self._stream) if self._stream else nullcontext():
            return make_voice(request, self._model)


def make_voice(request: VoiceRequest, model: SpeechModel) -> EncodedVoice:
    """Encode a recording and write the voice where the request wants it."""
    samples = torch.from_numpy(request.recording.read(request.layout).copy())
    latents, vector = encode_voice(
        request.key, samples, request.sample_rate, model.talker, model.vae, model.speaker_encoder
    )
    parts = [latents.float().cpu().flatten().numpy()]
    if vector is not None:
        parts.append(vector.numpy())
    speaker = 0 if vector is None else len(vector)
    return EncodedVoice(request.voice.write(np.concatenate(parts)), len(latents), speaker)


def _result(future: "Future[EncodedVoice]") -> EncodedVoice | Exception:
    error = future.exception()
    if error is None:
        return future.result()
    return error if isinstance(error, Exception) else OmniError(str(error))
