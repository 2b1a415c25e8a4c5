"""The talker engine's worker: continuous batching of speech requests in slots."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch

from sglang_omni.engines.runtime.worker import StepInput, StepResults
from sglang_omni.engines.speech.contract import (
    EncodedVoice,
    TalkerChunk,
    TalkerInfo,
    TalkerRequest,
    TalkerSettings,
    VoiceRequest,
)
from sglang_omni.engines.speech.pacing import (
    LatencyTarget,
    PlayingStream,
    check_admission,
    compute_buffered_s,
    select_streams,
)
from sglang_omni.engines.speech.scheduler import (
    PatchLimits,
    assign_slots,
    compute_patch_limit,
    is_last_patch,
    select_steppable,
)
from sglang_omni.engines.speech.voice_cache import VoiceCache, VoiceEncoder
from sglang_omni.models.registry import family_of
from sglang_omni.models.speech import (
    Admission,
    ExecutorSettings,
    OutputTrimmer,
    SpeechExecutor,
    SpeechInput,
    SpeechModel,
)
from sglang_omni.protocol.errors import OmniError, Overloaded
from sglang_omni.system.gpu_memory import count_gpu_memory
from sglang_omni.system.progress import report_progress

WARM_UP_TEXT = "One, two, three."
# How long a step without speech waits for a voice that is being encoded.
VOICE_WAIT_S = 0.02


@dataclass(frozen=True)
class Waiting:
    """A valid request that waits for a slot. `limit` is its maximum number of patches."""

    request: TalkerRequest
    input: SpeechInput
    limit: int


@dataclass
class Running:
    """A request in a slot.

    `patches` counts its generated patches. A cancelled request sends no more audio. `sent_s`
    seconds of audio were sent since `first_sent_at`, which is None before the first.
    """

    slot: int
    limit: int
    trimmer: OutputTrimmer
    patches: int = 0
    cancelled: bool = False
    first_sent_at: float | None = None
    sent_s: float = 0.0

    def note_sent(self, seconds: float, now: float) -> None:
        """Count audio that is sent now."""
        if self.first_sent_at is None and seconds:
            self.first_sent_at = now
        self.sent_s += seconds


@dataclass(frozen=True)
class PendingStep:
    """A step whose samples are not collected yet. `last` tells which requests end with it."""

    requests: dict[str, Running]
    last: tuple[bool, ...]


@dataclass
class TalkerCounters:
    """Totals since the worker's start. `aborted` counts cancelled requests.

    `overloaded` counts requests that would stall other speech; `request_errors` includes them.
    """

    steps: int = 0
    patches: int = 0
    finished: int = 0
    aborted: int = 0
    request_errors: int = 0
    overloaded: int = 0
    voices_made: int = 0
    audio_seconds: float = 0.0


@dataclass
class Queues:
    """Requests by id, oldest first, and the free slots, lowest first.

    A request that generated its last patch is in neither queue. It keeps its slot until the patch
    is collected.
    """

    free: list[int]
    waiting: dict[str, Waiting] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)

    def release(self, slot: int) -> None:
        """Free a slot."""
        self.free = sorted([*self.free, slot])


class TalkerWorker:
    """A `StepWorker` that assigns requests to slots. A `step` generates one patch for each."""

    def __init__(
        self,
        model: SpeechModel,
        settings: TalkerSettings,
        executor: SpeechExecutor | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model, self._clock = model, clock
        self._info = model.info
        self._limits = PatchLimits(
            settings.min_patches,
            settings.max_patches,
            settings.context,
            model.info.stop_threshold,
        )
        self._executor = executor or model.open_executor(executor_settings(settings))
        self._slots, self._latency_target = settings.slots, LatencyTarget(settings.slots)
        self._rejects_late = settings.admission == "real_time"
        self._queues = Queues(list(range(settings.slots)))
        self._voice_cache, self._voice_encoder = VoiceCache(model), VoiceEncoder(model)
        self._pending_step: PendingStep | None = None
        self._stalled: frozenset[str] = frozenset()
        self._counters = TalkerCounters()
        self.info = TalkerInfo(
            model.info.sample_rate,
            model.info.frame_s,
            model.info.voices,
            settings.slots,
            model.info.has_speaker_encoder,
        )

    @property
    def busy(self) -> bool:
        """Return whether a step would do work, given the requests stalled in the last step."""
        return self._voice_encoder.is_busy or self._has_speech_work

    @property
    def _has_speech_work(self) -> bool:
        queues = self._queues
        if self._pending_step or (queues.waiting and queues.free):
            return True
        return any(request_id not in self._stalled for request_id in queues.running)

    def step(self, work: StepInput) -> StepResults:
        """Drop cancelled requests, accept new ones, and advance those that are not stalled.

        Each stepped request yields one `TalkerChunk`; with an executor that overlaps steps, in the
        next call. A `VoiceRequest` yields its `EncodedVoice` when it is done, and no step waits for
        it while there is speech to generate. An invalid request yields its `OmniError`.
        """
        for request_id in work.cancellations:
            self._cancel(request_id)
        self._stalled = work.stalled
        results = self._accept(work)
        self._admit()
        results += self._collect_voices()
        chosen = self._choose(work)
        if chosen:
            self._executor.begin([running.slot for running in chosen.values()])
        if self._executor.overlaps:
            results += self._collect()
        if chosen:
            self._finish(chosen)
        if not self._executor.overlaps:
            results += self._collect()
        return results

    def counters(self) -> dict[str, float]:
        """Return the current load, and totals since the start."""
        queues = self._queues
        held = {"active_slots": self._slots - len(queues.free), "waiting": len(queues.waiting)}
        return {**held, **vars(self._counters), **count_gpu_memory()}

    def close(self) -> None:
        """Drop every request. The memory is freed with the process."""
        self._voice_encoder.close()
        self._queues = Queues(free=[])

    def warm_up(self) -> None:
        """Speak one short text, so that every kernel has run, and reset the counters."""
        voice = next(iter(self._model.voices))
        request = TalkerRequest(WARM_UP_TEXT, voice, seed=0, max_patches=3)
        work = StepInput(arrivals=(("warm-up", request),))
        while work.arrivals or self.busy:
            for _, result in self.step(work):
                if isinstance(result, Exception):
                    raise result
            work = StepInput()
        self._counters = TalkerCounters()

    def _accept(self, work: StepInput) -> StepResults:
        """Queue the arrivals. Return the errors of those that are rejected."""
        errors: StepResults = []
        for request_id, request in work.arrivals:
            if isinstance(request, VoiceRequest):
                self._voice_encoder.start(request_id, request)
                continue
            try:
                waiting = self._check(request)
                self._check_admission(request)
                self._queues.waiting[request_id] = waiting
            except (OmniError, OSError) as error:
                self._counters.request_errors += 1
                self._counters.overloaded += isinstance(error, Overloaded)
                errors.append((request_id, error))
        return errors

    def _check(self, request: TalkerRequest) -> Waiting:
        voice = self._voice_cache.find(request.voice)
        prepared = self._model.prepare(request.text, voice, request.style)
        estimate = self._model.max_frames(request.text)
        limit = compute_patch_limit(
            estimate, request.max_patches, prepared.num_tokens, self._limits
        )
        return Waiting(request, prepared, limit)

    def _collect_voices(self) -> StepResults:
        """Return the voices that are encoded by now."""
        results = (
            self._voice_encoder.collect(0.0 if self._has_speech_work else VOICE_WAIT_S)
            if self._voice_encoder.is_busy
            else []
        )
        self._counters.voices_made += sum(isinstance(voice, EncodedVoice) for _, voice in results)
        return results

    def _check_admission(self, request: TalkerRequest) -> None:
        """Reject a new answer that would stall playing streams, if the step times are known.

        Later fragments of an answer that plays are always accepted.
        """
        if self._rejects_late and self._executor.step_times is not None and request.segment == 0:
            queues = self._queues
            streams = self._playing_streams(queues.running)
            new_requests = len(queues.running) - len(streams) + len(queues.waiting)
            check_admission(streams, new_requests, self._executor.step_times, self._latency_target)

    def _playing_streams(self, requests: Iterable[str]) -> list[PlayingStream]:
        """Return those of the running requests that have sent audio."""
        now, streams = self._clock(), []
        for request_id in requests:
            running = self._queues.running[request_id]
            if running.first_sent_at is not None:
                buffered_s = compute_buffered_s(running.sent_s, running.first_sent_at, now)
                remaining_s = (running.limit - running.patches) * self._info.frame_s
                streams.append(PlayingStream(request_id, buffered_s, remaining_s))
        return streams

    def _admit(self) -> None:
        queues, admissions = self._queues, []
        for request_id, slot in assign_slots(queues.waiting, queues.free):
            waiting = queues.waiting.pop(request_id)
            queues.free.remove(slot)
            request, trimmer = waiting.request, self._model.open_trimmer()
            queues.running[request_id] = Running(slot, waiting.limit, trimmer)
            admissions.append(Admission(slot, waiting.input, request.seed, request.segment))
        if admissions:
            self._executor.prefill(admissions)

    def _choose(self, work: StepInput) -> dict[str, Running]:
        """Return the requests of the next step: not stalled, and the most urgent if too many."""
        running = self._queues.running
        chosen = select_steppable(running, work.stalled)
        if len(chosen) > self._executor.max_batch_size:
            chosen = self._most_urgent(chosen)
        return {request_id: running[request_id] for request_id in chosen}

    def _most_urgent(self, requests: list[str]) -> list[str]:
        """Return the most urgent requests, as many as one step takes."""
        step_times, max_streams = self._executor.step_times, self._executor.max_batch_size
        assert step_times is not None, "an executor that cannot step all slots has step times"
        streams = self._playing_streams(requests)
        playing = {stream.request_id for stream in streams}
        new_requests = [request_id for request_id in requests if request_id not in playing]
        return select_streams(new_requests, streams, step_times, max_streams)

    def _finish(self, chosen: dict[str, Running]) -> None:
        """Apply the stop rule to the step in progress, and start decoding its samples."""
        is_last = []
        probabilities = self._executor.read_stop_probabilities()
        for (request_id, running), stop in zip(chosen.items(), probabilities, strict=True):
            is_last.append(is_last_patch(running.patches, stop, running.limit, self._limits))
            running.patches += 1
            if is_last[-1]:
                del self._queues.running[request_id]
        self._executor.finish(is_last)
        self._pending_step = PendingStep(chosen, tuple(is_last))
        self._counters.steps += 1

    def _collect(self) -> StepResults:
        """Return the chunks of the last finished step."""
        if self._pending_step is None:
            return []
        step, self._pending_step = self._pending_step, None
        results: StepResults = []
        samples, now = self._executor.collect(), self._clock()
        for (request_id, running), pcm, last in zip(
            step.requests.items(), samples, step.last, strict=True
        ):
            if last or running.cancelled:
                self._queues.release(running.slot)
            if running.cancelled:
                continue
            pcm = running.trimmer.push(pcm, last)
            seconds = len(pcm) / self._info.sample_rate
            running.note_sent(seconds, now)
            self._counters.patches += 1
            self._counters.audio_seconds += seconds
            self._counters.finished += last
            results.append((request_id, TalkerChunk(pcm, patches=1, last=last)))
        return results

    def _cancel(self, request_id: str) -> None:
        """Drop a request. With samples pending, it keeps its slot until they are collected."""
        self._counters.aborted += 1
        if self._queues.waiting.pop(request_id, None) or self._voice_encoder.cancel(request_id):
            return
        running = self._queues.running.pop(request_id, None)
        if self._pending_step and request_id in self._pending_step.requests:
            self._pending_step.requests[request_id].cancelled = True
        elif running:
            self._queues.release(running.slot)


def executor_settings(settings: TalkerSettings) -> ExecutorSettings:
    """Return the settings that concern the executor."""
    return ExecutorSettings(
        settings.slots, settings.context, settings.max_patches, settings.graphs, settings.fp8
    )


def open_worker(settings: TalkerSettings) -> TalkerWorker:
    """Load the talker and warm it up.

    Raises:
        CheckpointError: The checkpoint is incomplete or has no voices.
        ConfigError: The dtype is unknown.
    """
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    device = torch.device(settings.device)
    if device.type == "cuda":
        # CUDA events, pinned memory and Triton use the current device.
        torch.cuda.set_device(device)
    family = family_of(settings.checkpoint)
    model = family.load_speech_model(settings.checkpoint, settings.device, settings.dtype)
    worker = TalkerWorker(model, settings)
    report_progress("warming up")
    worker.warm_up()
    return worker
