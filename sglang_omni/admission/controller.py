"""Admission of requests to the engines that they need, and estimates of their size."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from sglang_omni.admission.start_queue import StartQueue
from sglang_omni.admission.timeout import with_timeout
from sglang_omni.engines.image.contract import ImageEngineInfo
from sglang_omni.engines.runtime.process import EngineHealth, EngineProcess
from sglang_omni.engines.runtime.replica import UP_STATES
from sglang_omni.engines.speech.contract import TalkerInfo
from sglang_omni.engines.thinker.contract import ThinkerInfo
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.image_request import ImageRequest
from sglang_omni.pipeline.request import ChatRequest, MediaPart, SpeechRequest, TextPart
from sglang_omni.queueing.policy import Capacity
from sglang_omni.queueing.queue import AdmissionQueue, QueueRules

# Estimates are enough, because the engine reports its real use. Text has about one token per three
# bytes at most. Sampling bounds the tokens of a medium.
BYTES_PER_TOKEN = 3
TOKENS_PER_MEDIUM = {"image": 1024, "video": 4096, "audio": 512}
# Most answers end long before their limit.
TYPICAL_ANSWER_TOKENS = 512

Request = ChatRequest | SpeechRequest
T = TypeVar("T")


def estimate_prompt_tokens(request: ChatRequest) -> int:
    """Return an estimate of a chat's prompt tokens."""
    parts = [part for message in request.messages for part in message.content]
    text_bytes = sum(len(part.text.encode()) for part in parts if isinstance(part, TextPart))
    media = [part for part in parts if isinstance(part, MediaPart)]
    media_tokens = sum(TOKENS_PER_MEDIUM[part.kind] for part in media)
    num_sounds = sum(part.kind == "video" and part.video.sound != "off" for part in media)
    sound_tokens = num_sounds * TOKENS_PER_MEDIUM["audio"]
    text_tokens = text_bytes // BYTES_PER_TOKEN + len(request.prompt_ids or ())
    return text_tokens + media_tokens + sound_tokens


def estimate_kv_tokens(request: ChatRequest) -> int:
    """Return an estimate of a chat's KV cache tokens: its prompt and a typical answer."""
    return estimate_prompt_tokens(request) + min(request.sampling.max_tokens, TYPICAL_ANSWER_TOKENS)


class AdmissionController:
    """Admit requests to their engines, by the capacity that the engines report.

    The image engine, which some servers have, is asked for each image by itself.
    """

    def __init__(
        self,
        engines: Mapping[str, Sequence[EngineProcess]],
        rules: QueueRules,
        timeout_s: float,
    ) -> None:
        """Take the replicas of each engine, the queues' rules and the time limit of a request."""
        self._timeout_s = timeout_s
        self._queues = {
            "talker": AdmissionQueue("talker", lambda: talker_capacity(engines["talker"]), rules),
            "thinker": AdmissionQueue(
                "thinker", lambda: thinker_capacity(engines["thinker"]), rules
            ),
        }
        if "image" in engines:
            self._queues["image"] = AdmissionQueue(
                "image engine", lambda: image_capacity(engines["image"]), rules
            )
        self._image_start = StartQueue(engines.get("image", ()))

    def counters(self) -> dict[str, dict[str, float]]:
        """Return how many requests are admitted, wait, and were rejected, by engine."""
        counters = {name: queue.counters() for name, queue in self._queues.items()}
        if "image" in counters:
            counters["image"]["queued"] += self._image_start.num_waiting
        return counters

    def with_timeout(
        self, request: Request | ImageRequest, events: AsyncGenerator[T, None]
    ) -> AsyncGenerator[T, None]:
        """Yield the events of a request within its time limit, which includes its waits.

        Raises `DeadlineExceeded` when the time is up.
        """
        seconds = min(request.timeout_s or self._timeout_s, self._timeout_s)
        return with_timeout(events, seconds)

    @asynccontextmanager
    async def admit(self, request: Request) -> AsyncIterator[None]:
        """Wait for capacity in the engines that a request needs, and hold it during the body.

        Raises `Overloaded`.
        """
        async with AsyncExitStack() as stack:
            # Always in this order, so that two requests never wait for each other.
            if request.voice is not None:
                await self._enter(stack, "talker", request)
            if isinstance(request, ChatRequest):
                await self._enter(stack, "thinker", request, estimate_kv_tokens(request))
            yield

    @asynccontextmanager
    async def admit_image(self, request: ImageRequest) -> AsyncIterator[None]:
        """Wait for the engine and for room for one image, and hold it during the body.

        Raises `Overloaded`, and `EngineUnavailable` if the engine cannot start.
        """
        if self._image_start.must_wait:
            with stage("image_start"):
                await self._image_start.wait()
        async with AsyncExitStack() as stack:
            await self._enter(stack, "image", request)
            yield

    async def _enter(
        self,
        stack: AsyncExitStack,
        engine: str,
        request: Request | ImageRequest,
        kv_tokens: int = 0,
    ) -> None:
        admitted = self._queues[engine].admit(request.tenant, request.priority, kv_tokens)
        with stage(f"{engine}_queue"):
            await stack.enter_async_context(admitted)


def thinker_capacity(replicas: Sequence[EngineProcess]) -> Capacity | None:
    """Return the slots and the KV cache of the thinker's replicas that are up, or None."""
    healths = _healths_up(replicas)
    if not healths:
        return None
    infos: list[ThinkerInfo] = [health.info for health in healths]
    return Capacity(
        sum(info.max_running_requests for info in infos),
        sum(info.max_total_tokens for info in infos),
        sum(int(health.counters.get("kv_tokens_used", 0)) for health in healths),
    )


def talker_capacity(replicas: Sequence[EngineProcess]) -> Capacity | None:
    """Return the slots of the talker's replicas that are up, or None. Each slot has its cache."""
    infos: list[TalkerInfo] = [health.info for health in _healths_up(replicas)]
    return Capacity(sum(info.slots for info in infos)) if infos else None


def image_capacity(replicas: Sequence[EngineProcess]) -> Capacity | None:
    """Return the images that the replicas that are up may have in progress, or None."""
    infos: list[ImageEngineInfo] = [health.info for health in _healths_up(replicas)]
    return Capacity(sum(info.max_images for info in infos)) if infos else None


def _healths_up(replicas: Sequence[EngineProcess]) -> list[EngineHealth]:
    healths = [replica.health for replica in replicas]
    return [health for health in healths if health.info is not None and health.state in UP_STATES]
