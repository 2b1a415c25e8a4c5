"""The talker engine's worker: requests join free slots, step together, and stream samples out."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch

from sglang_omni.engines.runtime.worker import StepInput, StepResults, report_progress
from sglang_omni.engines.speech.contract import (
    EncodedVoice,
    SpeechStyle,
    TalkerChunk,
    TalkerInfo,
    TalkerRequest,
    TalkerSettings,
    VoiceRequest,
)
from sglang_omni.engines.speech.pacing import (
    LatencyTarget,
    PlayingStream,
    buffered_s,
    choose,
    require_room,
)
from sglang_omni.engines.speech.scheduler import (
    PATCH_SECONDS,
    Limits,
    assign,
    is_last,
    patch_limit,
    steppable,
)
from sglang_omni.engines.speech.voice_cache import VoiceCache, VoiceEncoder
from sglang_omni.models.ming.speech.cfm import Sampling
from sglang_omni.models.ming.speech.executor import Admission, Executor, PlainExecutor
from sglang_omni.models.ming.speech.loading import SpeechModel, load_speech_model
from sglang_omni.models.ming.speech.prompt import SPEECH_TASK, PromptIds, SpeechPrompt
from sglang_omni.models.ming.speech.silence import SilenceTrimmer
from sglang_omni.models.ming.speech.voices import VoicePrompt
from sglang_omni.protocol.errors import OmniError

WARM_UP_TEXT = "One, two, three."
# How long a step that has nobody to speak for waits for a voice that is being made.
MAKING_S = 0.02


@dataclass(frozen=True)
class Waiting:
    """A checked request that waits for a slot; `limit` is the most patches it gets."""

    request: TalkerRequest
    prompt: PromptIds
    voice: VoicePrompt
    limit: int


@dataclass
class Running:
    """A request in a slot. `patches` counts what it generated; a cancelled one is silent.

    `sent_s` seconds of audio left since `first_sent_at`, None before the first.
    """

    slot: int
    limit: int
    trimmer: SilenceTrimmer
    patches: int = 0
    cancelled: bool = False
    first_sent_at: float | None = None
    sent_s: float = 0.0

    def note_sent(self, seconds: float, now: float) -> None:
        """Count audio that leaves now."""
        if self.first_sent_at is None and seconds:
            self.first_sent_at = now
        self.sent_s += seconds


@dataclass(frozen=True)
class PendingStep:
    """The requests of a step whose samples are still to be collected, and who ends with it."""

    requests: dict[str, Running]
    last: tuple[bool, ...]


@dataclass
class TalkerCounters:
    """What the worker did since its start. `aborted` counts cancelled requests."""

    steps: int = 0
    patches: int = 0
    finished: int = 0
    aborted: int = 0
    refused: int = 0
    voices_made: int = 0
    audio_seconds: float = 0.0


@dataclass
class Queues:
    """Requests by id, oldest first, and the free slots, lowest first.

    A request that made its last patch is in neither: it keeps its slot until it is collected.
    """

    free: list[int]
    waiting: dict[str, Waiting] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)

    def release(self, slot: int) -> None:
        """Free a slot."""
        self.free = sorted([*self.free, slot])


class TalkerWorker:
    """A `StepWorker`: owns who is in which slot. One call of `step` is one patch each."""

    def __init__(
        self,
        model: SpeechModel,
        settings: TalkerSettings,
        executor: Executor | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model, self._clock = model, clock
        self._limits = Limits(settings.min_patches, settings.max_patches, settings.context)
        self._executor = executor or open_executor(model, settings)
        self._slots, self._promise = settings.slots, LatencyTarget(settings.slots)
        self._refuses_late = settings.admission == "real_time"
        self._queues = Queues(list(range(settings.slots)))
        self._book, self._maker = VoiceCache(model), VoiceEncoder(model)
        self._stepped: PendingStep | None = None
        self._stalled: frozenset[str] = frozenset()
        self._tally = TalkerCounters()
        self._rate = model.vae.config.sample_rate
        self.info = TalkerInfo(
            self._rate, tuple(model.voices), settings.slots, model.speaker_encoder is not None
        )

    @property
    def busy(self) -> bool:
        """Whether a step would do anything: no client of the last step's stalled ones is back."""
        return self._maker.busy or self._speaks

    @property
    def _speaks(self) -> bool:
        queues = self._queues
        if self._stepped or (queues.waiting and queues.free):
            return True
        return any(request_id not in self._stalled for request_id in queues.running)

    def step(self, work: StepInput) -> StepResults:
        """Forget cancelled requests, take new ones in, and advance those that are not stalled.

        Each stepped request yields one `TalkerChunk`, in the next call where the executor works
        ahead. A `VoiceRequest` yields its `EncodedVoice` whenever it is done: no step waits for one
        as long as anybody speaks. A request that cannot be served yields its `OmniError`.
        """
        for request_id in work.cancellations:
            self._cancel(request_id)
        self._stalled = work.stalled
        results = self._take_in(work)
        self._admit()
        results += self._made()
        chosen = self._choose(work)
        if chosen:
            self._executor.begin([one.slot for one in chosen.values()])
        if self._executor.overlaps:
            results += self._collect()
        if chosen:
            self._finish(chosen)
        if not self._executor.overlaps:
            results += self._collect()
        return results

    def counters(self) -> dict[str, float]:
        """What is held now, and totals since the start."""
        queues = self._queues
        held = {"active_slots": self._slots - len(queues.free), "waiting": len(queues.waiting)}
        return {**held, **vars(self._tally)}

    def close(self) -> None:
        """Forget every request. The memory goes with the process."""
        self._maker.close()
        self._queues = Queues(free=[])

    def warm_up(self) -> None:
        """Speak one short text, so that every kernel has run; leaves no trace in the counters."""
        voice = next(iter(self._model.voices))
        request = TalkerRequest(WARM_UP_TEXT, voice, seed=0, max_patches=3)
        work = StepInput(arrivals=(("warm-up", request),))
        while work.arrivals or self.busy:
            for _, result in self.step(work):
                if isinstance(result, Exception):
                    raise result
            work = StepInput()
        self._tally = TalkerCounters()

    def _take_in(self, work: StepInput) -> StepResults:
        """Queue the arrivals; returns the errors of those that cannot be served."""
        refusals: StepResults = []
        for request_id, request in work.arrivals:
            if isinstance(request, VoiceRequest):
                self._maker.begin(request_id, request)
                continue
            try:
                waiting = self._check(request)
                self._require_room(request)
                self._queues.waiting[request_id] = waiting
            except (OmniError, OSError) as error:
                self._tally.refused += 1
                refusals.append((request_id, error))
        return refusals

    def _check(self, request: TalkerRequest) -> Waiting:
        voice = self._book.find(request.voice)
        prompt = self._model.tokenizer.assemble(speech_prompt(request, voice))
        limit = patch_limit(request.text, request.max_patches, len(prompt.ids), self._limits)
        return Waiting(request, prompt, voice, limit)

    def _made(self) -> StepResults:
        """The voices that are ready by now."""
        made = self._maker.done(0.0 if self._speaks else MAKING_S) if self._maker.busy else []
        self._tally.voices_made += sum(isinstance(one, EncodedVoice) for _, one in made)
        return made

    def _require_room(self, request: TalkerRequest) -> None:
        """Refuse a new answer for which somebody's speech would stall, where the pace is known.

        Later fragments of an answer that plays already are always taken.
        """
        if self._refuses_late and self._executor.pace is not None and request.segment == 0:
            queues = self._queues
            listeners = self._listeners(queues.running)
            newcomers = len(queues.running) - len(listeners) + len(queues.waiting)
            require_room(listeners, newcomers, self._executor.pace, self._promise)

    def _listeners(self, requests: Iterable[str]) -> list[PlayingStream]:
        """Those of the running requests that have had audio."""
        now, found = self._clock(), []
        for request_id in requests:
            one = self._queues.running[request_id]
            if one.first_sent_at is not None:
                ahead = buffered_s(one.sent_s, one.first_sent_at, now)
                left = (one.limit - one.patches) * PATCH_SECONDS
                found.append(PlayingStream(request_id, ahead, left))
        return found

    def _admit(self) -> None:
        queues, admissions = self._queues, []
        for request_id, slot in assign(queues.waiting, queues.free):
            waiting = queues.waiting.pop(request_id)
            queues.free.remove(slot)
            queues.running[request_id] = Running(slot, waiting.limit, SilenceTrimmer(self._rate))
            one = waiting.request
            how = self._sampling(one.manner)
            admissions.append(
                Admission(slot, waiting.prompt, waiting.voice, one.seed, one.segment, how)
            )
        if admissions:
            self._executor.prefill(admissions)

    def _sampling(self, manner: SpeechStyle) -> Sampling:
        cfg = self._model.talker.config.cfg_strength if manner.cfg is None else manner.cfg
        return Sampling(cfg, manner.sigma, manner.temperature)

    def _choose(self, work: StepInput) -> dict[str, Running]:
        """Who steps: those whose clients keep up, the most urgent where they are too many."""
        running = self._queues.running
        chosen = steppable(running, work.stalled)
        if len(chosen) > self._executor.width:
            chosen = self._most_urgent(chosen)
        return {request_id: running[request_id] for request_id in chosen}

    def _most_urgent(self, requests: list[str]) -> list[str]:
        """As many of the running requests as one step takes."""
        pace, width = self._executor.pace, self._executor.width
        assert pace is not None, "an executor of limited width knows its pace"
        listeners = self._listeners(requests)
        heard = {one.request_id for one in listeners}
        newcomers = [request_id for request_id in requests if request_id not in heard]
        return choose(newcomers, listeners, pace, width)

    def _finish(self, chosen: dict[str, Running]) -> None:
        """Apply the stop rule to the step that has begun, and have its samples decoded."""
        ends = []
        for (request_id, one), stop in zip(chosen.items(), self._executor.stops(), strict=True):
            ends.append(is_last(one.patches, stop, one.limit, self._limits))
            one.patches += 1
            if ends[-1]:
                del self._queues.running[request_id]
        self._executor.finish(ends)
        self._stepped = PendingStep(chosen, tuple(ends))
        self._tally.steps += 1

    def _collect(self) -> StepResults:
        """The chunks of the step finished last."""
        if self._stepped is None:
            return []
        stepped, self._stepped = self._stepped, None
        results: StepResults = []
        samples, now = self._executor.collect(), self._clock()
        for (request_id, one), pcm, last in zip(
            stepped.requests.items(), samples, stepped.last, strict=True
        ):
            if last or one.cancelled:
                self._queues.release(one.slot)
            if one.cancelled:
                continue
            pcm = one.trimmer.push(pcm, last)
            seconds = len(pcm) / self._rate
            one.note_sent(seconds, now)
            self._tally.patches += 1
            self._tally.audio_seconds += seconds
            self._tally.finished += last
            results.append((request_id, TalkerChunk(pcm, patches=1, last=last)))
        return results

    def _cancel(self, request_id: str) -> None:
        """Drop a request. One whose samples are under way keeps its slot until they are here."""
        self._tally.aborted += 1
        if self._queues.waiting.pop(request_id, None) or self._maker.cancel(request_id):
            return
        running = self._queues.running.pop(request_id, None)
        if self._stepped and request_id in self._stepped.requests:
            self._stepped.requests[request_id].cancelled = True
        elif running:
            self._queues.release(running.slot)


def speech_prompt(request: TalkerRequest, voice: VoicePrompt) -> SpeechPrompt:
    """What the talker is asked. Under a caption the recording only primes the history, as in the
    released demos: its words would set the tone that the caption is to set."""
    manner = request.manner
    return SpeechPrompt(
        request.text,
        description=SPEECH_TASK if manner.description is None else manner.description,
        prompt_text=voice.text if manner.instruction is None else None,
        prompt_patches=len(voice.embeds),
        speakers=0 if voice.speaker is None else 1,
        instruction=manner.instruction,
    )


def open_executor(model: SpeechModel, settings: TalkerSettings) -> Executor:
    """The executor for the device: graphs on CUDA unless they are switched off, else plain."""
    if torch.device(settings.device).type != "cuda" or not settings.graphs:
        return PlainExecutor(model, settings.slots, settings.context)
    # Imported here because Triton is neither needed nor always there without a GPU.
    from sglang_omni.models.ming.speech.fast.graph_executor import GraphExecutor

    return GraphExecutor(
        model, settings.slots, settings.context, settings.max_patches, fp8=settings.fp8
    )


def open_worker(settings: TalkerSettings) -> TalkerWorker:
    """Load the talker of `settings.checkpoint` and warm it up.

    Raises `CheckpointError` for an incomplete checkpoint or one without voices, and `ConfigError`
    for an unknown dtype.
    """
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    device = torch.device(settings.device)
    if device.type == "cuda":
        # Events, pinned memory and Triton go by the current card.
        torch.cuda.set_device(device)
    worker = TalkerWorker(load_speech_model(settings), settings)
    report_progress("warming up")
    worker.warm_up()
    return worker
