"""The door of the server: what each kind of request needs of which engine."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from sglang_omni.admission.timeout import with_timeout
from sglang_omni.engines.runtime.process import EngineHealth, EngineProcess
from sglang_omni.engines.speech.contract import TalkerInfo
from sglang_omni.engines.thinker.contract import ThinkerInfo
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.request import ChatRequest, Event, MediaPart, SpeechRequest, TextPart
from sglang_omni.queueing.policy import Capacity
from sglang_omni.queueing.queue import AdmissionQueue, QueueRules

# A guess is enough: the engine counts. Text has at most one token for three bytes or so; the
# tokens of a medium are bounded by how it is sampled.
BYTES_PER_TOKEN = 3
MEDIUM_TOKENS = {"image": 1024, "video": 4096, "audio": 512}
# Most answers end long before they may.
LIKELY_TOKENS = 512
# One that has been silent for a moment may be heard again: the door stays as narrow.
UP = ("ready", "unresponsive")

Request = ChatRequest | SpeechRequest


def estimate_prompt_tokens(request: ChatRequest) -> int:
    """Tokens that the prompt of a chat has, about."""
    parts = [part for message in request.messages for part in message.content]
    text = sum(len(part.text.encode()) for part in parts if isinstance(part, TextPart))
    media = sum(MEDIUM_TOKENS[part.kind] for part in parts if isinstance(part, MediaPart))
    return text // BYTES_PER_TOKEN + media


def estimate_kv_tokens(request: ChatRequest) -> int:
    """Tokens of KV cache that a chat will likely take: its prompt and a usual answer."""
    return estimate_prompt_tokens(request) + min(request.sampling.max_tokens, LIKELY_TOKENS)


class AdmissionController:
    """Admits requests to the thinker and the talker, by these engines' own budgets."""

    def __init__(
        self,
        engines: Mapping[str, Sequence[EngineProcess]],
        rules: QueueRules,
        timeout_s: float,
    ) -> None:
        """`engines` has the replicas of each engine; `timeout_s` is the longest that any request
        may take."""
        self._timeout_s = timeout_s
        self._turnstiles = {
            "talker": AdmissionQueue("talker", lambda: talker_budget(engines["talker"]), rules),
            "thinker": AdmissionQueue("thinker", lambda: thinker_budget(engines["thinker"]), rules),
        }

    def counters(self) -> dict[str, dict[str, float]]:
        """Who is admitted, who waits and who was refused, by engine."""
        return {name: one.counters() for name, one in self._turnstiles.items()}

    def limited(
        self, request: Request, events: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[Event, None]:
        """Pass on the events of a request for as long as it may take, its waits included.

        Raises `DeadlineExceeded` when its time is up.
        """
        seconds = min(request.timeout_s or self._timeout_s, self._timeout_s)
        return with_timeout(events, seconds)

    @asynccontextmanager
    async def admit(self, request: Request) -> AsyncIterator[None]:
        """Wait for room in the engines that a request needs, and hold it during the body.

        Raises `Overloaded`.
        """
        async with AsyncExitStack() as stack:
            # Always in this order, so that no two requests wait for each other.
            if request.voice is not None:
                await self._enter(stack, "talker", request)
            if isinstance(request, ChatRequest):
                await self._enter(stack, "thinker", request, estimate_kv_tokens(request))
            yield

    async def _enter(
        self, stack: AsyncExitStack, engine: str, request: Request, kv_tokens: int = 0
    ) -> None:
        admitted = self._turnstiles[engine].admit(request.tenant, request.priority, kv_tokens)
        with stage(f"{engine}_queue"):
            await stack.enter_async_context(admitted)


def thinker_budget(replicas: Sequence[EngineProcess]) -> Capacity | None:
    """The thinker's slots and cache, of those replicas that are up; None while none is."""
    up = _up(replicas)
    if not up:
        return None
    infos: list[ThinkerInfo] = [health.info for health in up]
    return Capacity(
        sum(info.max_running_requests for info in infos),
        sum(info.max_total_tokens for info in infos),
        sum(int(health.counters.get("kv_tokens_used", 0)) for health in up),
    )


def talker_budget(replicas: Sequence[EngineProcess]) -> Capacity | None:
    """The talker's slots, each with a cache of its own, of those replicas that are up; None while
    none is."""
    infos: list[TalkerInfo] = [health.info for health in _up(replicas)]
    return Capacity(sum(info.slots for info in infos)) if infos else None


def _up(replicas: Sequence[EngineProcess]) -> list[EngineHealth]:
    healths = [replica.health for replica in replicas]
    return [health for health in healths if health.info is not None and health.state in UP]
