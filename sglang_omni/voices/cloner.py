"""Clone voices from recordings: fetch, decode, encode with the talker engine, and cache."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from sglang_omni.caching.lru_cache import LruCache
from sglang_omni.engines.media_decoder.contract import Decoded
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.speech.contract import ClonedVoice, EncodedVoice, VoiceRequest
from sglang_omni.media.fetch import FetchPolicy, fetch_all
from sglang_omni.media.limits import Kind, PixelBudget
from sglang_omni.pipeline.media_preprocessor import create_media_queue, with_error_field
from sglang_omni.pipeline.request import MediaPart
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.queueing.queue import AdmissionQueue

KEY_BYTES = 16


@dataclass(frozen=True)
class RecordingRules:
    """Limits of a recording: its length and its file size, and how many results are cached."""

    min_seconds: float
    max_seconds: float
    file_bytes: int
    max_cached: int


class RecordingDecoder(Protocol):
    """The media decoder processes."""

    async def decode(
        self,
        kind: Kind,
        files: Sequence[bytes],
        image: PixelBudget | None = None,
        sample_rate: int | None = None,
        max_seconds: float | None = None,
        tenant: str | None = None,
    ) -> tuple[Decoded, SharedArray]:
        """Decode files into a new array. Raises `InvalidRequest` if they cannot be decoded."""
        ...


@dataclass(frozen=True)
class CloneResult:
    """A voice cloned from a recording of `seconds`.

    `has_speaker` says whether the voice includes a speaker embedding.
    """

    voice: ClonedVoice
    seconds: float
    has_speaker: bool


class RecordingCloner:
    """Clone voices from recordings. Concurrent requests for equal recordings encode them once."""

    def __init__(
        self,
        policy: FetchPolicy,
        rules: RecordingRules,
        media_decoders: RecordingDecoder,
        talker: Engine,
        get_sample_rate: Callable[[], int],
        media_queue: AdmissionQueue | None = None,
    ) -> None:
        """Take the engines to use.

        Args:
            policy: Where recordings may come from.
            rules: Limits of a recording.
            media_decoders: Decode recordings, and resample them to the talker's rate.
            talker: Encodes recordings.
            get_sample_rate: Returns the talker's rate in Hz. It raises `EngineUnavailable` until
                the talker was ready once.
            media_queue: Shared by all users that fetch files.
        """
        self._media_queue = media_queue or create_media_queue()
        self._policy = replace(policy, file_bytes=rules.file_bytes)
        self._rules, self._media_decoders, self._talker = rules, media_decoders, talker
        self._get_sample_rate = get_sample_rate
        self._tasks: LruCache[str, asyncio.Task[CloneResult]] = LruCache(rules.max_cached)

    async def clone(
        self, part: MediaPart, text: str | None, tenant: str | None = None
    ) -> CloneResult:
        """Return the voice of a recording. `text` is its transcript, None if unknown.

        Raises `InvalidRequest`, naming the part's field, if the recording cannot be used.
        """
        with with_error_field(part.field):
            async with self._media_queue.admit(tenant, "normal"):
                files = await fetch_all(part.sources, self._policy, tenant)
                key = hashlib.blake2b(files[0], digest_size=KEY_BYTES).hexdigest()
                # Shielded: other requests may wait for this task, and later ones use its result.
                result = await asyncio.shield(self._task(key, files[0], tenant))
        return replace(result, voice=replace(result.voice, text=text))

    def _task(self, key: str, file: bytes, tenant: str | None) -> "asyncio.Task[CloneResult]":
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.create_task(self._encode(key, file, tenant))
            task.add_done_callback(lambda task: self._forget_failure(key, task))
            self._tasks.put(key, task)
        return task

    def _forget_failure(self, key: str, task: "asyncio.Task[CloneResult]") -> None:
        """Remove a failed task from the cache, so that the next request tries again.

        This also retrieves the error, which may have no other reader.
        """
        has_failed = task.cancelled() or task.exception() is not None
        if has_failed and self._tasks.peek(key) is task:
            self._tasks.pop(key)

    async def _encode(self, key: str, file: bytes, tenant: str | None) -> CloneResult:
        sample_rate = self._get_sample_rate()
        decoded, recording = await self._media_decoders.decode(
            "audio",
            (file,),
            sample_rate=sample_rate,
            max_seconds=self._rules.max_seconds,
            tenant=tenant,
        )
        seconds = decoded.layout.shape[0] / sample_rate
        if seconds < self._rules.min_seconds:
            raise InvalidRequest(
                f"the recording has {seconds:.2f} s; a voice needs "
                f"at least {self._rules.min_seconds:g} s"
            )
        request = VoiceRequest(key, recording, decoded.layout, sample_rate, SharedArray())
        async with aclosing(self._talker.submit(request)) as outputs:
            encoded: EncodedVoice = await anext(outputs)
        voice = ClonedVoice(key, None, request.voice, encoded.layout, encoded.latents)
        return CloneResult(voice, seconds, encoded.speaker > 0)
