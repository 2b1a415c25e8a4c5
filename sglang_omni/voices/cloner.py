"""From a recording to a voice: fetched, decoded, encoded by the talker engine, and remembered."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from sglang_omni.admission.queue import AdmissionQueue
from sglang_omni.engines.media_decoder.contract import Decoded
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.speech.contract import ClonedVoice, EncodedVoice, VoiceRequest
from sglang_omni.media.fetch import FetchPolicy, fetch_all
from sglang_omni.media.limits import Kind, PixelBudget
from sglang_omni.pipeline.media_preprocessor import create_media_queue, with_error_field
from sglang_omni.pipeline.request import MediaPart
from sglang_omni.protocol.errors import InvalidRequest

# What the VAE is made for. Other rates are resampled by the decoding process.
RATE_HZ = 44_100
KEY_BYTES = 16


@dataclass(frozen=True)
class RecordingRules:
    """What a recording may be: its length in seconds and its bytes, and how many are remembered."""

    min_seconds: float
    max_seconds: float
    file_bytes: int
    cached: int


class RecordingDecoder(Protocol):
    """The decoding processes."""

    async def decode(
        self,
        kind: Kind,
        files: Sequence[bytes],
        image: PixelBudget | None = None,
        sample_rate: int | None = None,
        max_seconds: float | None = None,
        tenant: str | None = None,
    ) -> tuple[Decoded, SharedArray]:
        """Decode files into a new array. Raises `InvalidRequest` for what cannot be decoded."""
        ...


@dataclass(frozen=True)
class Cloned:
    """A voice made of a recording of `seconds`."""

    voice: ClonedVoice
    seconds: float
    has_speaker: bool


class Cloner:
    """Makes voices of recordings. The same recording is encoded once, also when it comes in several
    requests at once."""

    def __init__(
        self,
        policy: FetchPolicy,
        rules: RecordingRules,
        media_decoder: RecordingDecoder,
        talker: Engine,
        room: AdmissionQueue | None = None,
    ) -> None:
        """`room` is shared with whoever else fetches files."""
        self._room = room or create_media_queue()
        self._policy = replace(policy, file_bytes=rules.file_bytes)
        self._rules, self._media_decoder, self._talker = rules, media_decoder, talker
        self._known: OrderedDict[str, asyncio.Task[Cloned]] = OrderedDict()

    async def clone(self, part: MediaPart, text: str | None, tenant: str | None = None) -> Cloned:
        """The voice of a recording, whose words are `text` if anybody knows them.

        Raises `InvalidRequest`, naming the part's field, for what cannot be used.
        """
        with with_error_field(part):
            async with self._room.admit(tenant, "normal"):
                files = await fetch_all(part.sources, self._policy, tenant)
                key = hashlib.blake2b(files[0], digest_size=KEY_BYTES).hexdigest()
                # Shielded: others may wait for the same, and the next request will want it.
                made = await asyncio.shield(self._task(key, files[0], tenant))
        return replace(made, voice=replace(made.voice, text=text))

    def _task(self, key: str, file: bytes, tenant: str | None) -> "asyncio.Task[Cloned]":
        if key not in self._known:
            task = self._known[key] = asyncio.create_task(self._make(key, file, tenant))
            task.add_done_callback(lambda done: self._settle(key, done))
            while len(self._known) > self._rules.cached:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]

    def _settle(self, key: str, done: "asyncio.Task[Cloned]") -> None:
        """Forget a failure: the next attempt may succeed. Nobody else may look at its error."""
        failed = done.cancelled() or done.exception() is not None
        if failed and self._known.get(key) is done:
            del self._known[key]

    async def _make(self, key: str, file: bytes, tenant: str | None) -> Cloned:
        decoded, recording = await self._media_decoder.decode(
            "audio",
            (file,),
            sample_rate=RATE_HZ,
            max_seconds=self._rules.max_seconds,
            tenant=tenant,
        )
        seconds = decoded.layout.shape[0] / RATE_HZ
        if seconds < self._rules.min_seconds:
            raise InvalidRequest(
                f"the recording has {seconds:.2f} s; a voice needs {self._rules.min_seconds:g}"
            )
        asked = VoiceRequest(key, recording, decoded.layout, RATE_HZ, SharedArray())
        async with aclosing(self._talker.submit(asked)) as outputs:
            made: EncodedVoice = await anext(outputs)
        voice = ClonedVoice(key, None, asked.voice, made.layout, made.latents)
        return Cloned(voice, seconds, made.speaker > 0)
