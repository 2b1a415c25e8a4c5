"""The talker engine's worker: requests join free slots, step together, and stream samples out."""

from dataclasses import dataclass, field

import torch

from sglang_omni.engine.worker import StepInput, StepResults, report_progress
from sglang_omni.errors import CheckpointError, ConfigError, OmniError, UnknownVoice
from sglang_omni.models.ming.cfm import Sampling
from sglang_omni.models.ming.silence import SilenceTrimmer
from sglang_omni.models.ming.talker import Talker, load_talker
from sglang_omni.models.ming.talker_prompt import (
    PromptIds,
    PromptTokenizer,
    SpeechPrompt,
    embed_prompt,
    initial_history,
)
from sglang_omni.models.ming.vae import AudioVAE, load_vae
from sglang_omni.models.ming.voices import VoicePrompt, load_voices
from sglang_omni.talker.contract import TalkerChunk, TalkerInfo, TalkerRequest, TalkerSettings
from sglang_omni.talker.scheduler import Limits, assign, is_last, patch_limit, steppable
from sglang_omni.talker.slots import TalkerSlots
from sglang_omni.talker.step import decode_step
from sglang_omni.talker.stream import VaeSlots

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
WARM_UP_TEXT = "One, two, three."


@dataclass(frozen=True)
class Waiting:
    """A checked request that waits for a slot; `limit` is the most patches it gets."""

    request: TalkerRequest
    prompt: PromptIds
    limit: int


@dataclass
class Running:
    """A request in a slot. `length` counts its cache positions, `patches` what it generated."""

    slot: int
    limit: int
    length: int
    trimmer: SilenceTrimmer
    patches: int = 0


@dataclass
class Tally:
    """What the worker did since its start. `aborted` counts cancelled requests."""

    steps: int = 0
    patches: int = 0
    finished: int = 0
    aborted: int = 0
    refused: int = 0
    audio_seconds: float = 0.0


@dataclass(frozen=True)
class SpeechModel:
    """The loaded modules of the talker folder."""

    talker: Talker
    vae: AudioVAE
    tokenizer: PromptTokenizer
    voices: dict[str, VoicePrompt]


@dataclass
class Queues:
    """Requests by id, oldest first, and the free slots, lowest first."""

    free: list[int]
    waiting: dict[str, Waiting] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)

    def release(self, request_id: str) -> None:
        """Take a running request out and free its slot."""
        self.free = sorted([*self.free, self.running.pop(request_id).slot])


class TalkerWorker:
    """A `StepWorker`: owns the slots and who is in them. One call of `step` is one patch each."""

    def __init__(self, model: SpeechModel, settings: TalkerSettings) -> None:
        self._model = model
        self._limits = Limits(settings.min_patches, settings.max_patches, settings.context)
        self._sampling = Sampling(cfg=model.talker.config.cfg_strength)
        self._slots = TalkerSlots(model.talker, settings.slots, settings.context)
        self._streams = VaeSlots(model.vae, settings.slots)
        self._queues = Queues(list(range(settings.slots)))
        self._tally = Tally()
        self._rate = model.vae.config.sample_rate
        self.info = TalkerInfo(self._rate, tuple(model.voices), settings.slots)

    @property
    def busy(self) -> bool:
        """Whether any request is held."""
        return bool(self._queues.running or self._queues.waiting)

    def step(self, work: StepInput) -> StepResults:
        """Forget cancelled requests, take new ones in, and advance those that are not stalled.

        Each stepped request yields one `TalkerChunk`. A request that cannot be served yields its
        `OmniError`.
        """
        for request_id in work.cancellations:
            self._cancel(request_id)
        results: StepResults = []
        for request_id, request in work.arrivals:
            try:
                self._queues.waiting[request_id] = self._check(request)
            except OmniError as error:
                self._tally.refused += 1
                results.append((request_id, error))
        self._admit()
        return results + self._advance(steppable(self._queues.running, work.stalled))

    def counters(self) -> dict[str, float]:
        """What is held now, and totals since the start."""
        held = {"active_slots": len(self._queues.running), "waiting": len(self._queues.waiting)}
        return {**held, **vars(self._tally)}

    def close(self) -> None:
        """Forget every request. The memory goes with the process."""
        self._queues = Queues(free=[])

    def warm_up(self) -> None:
        """Speak one short text, so that every kernel has run; leaves no trace in the counters."""
        voice = next(iter(self._model.voices))
        request = TalkerRequest(WARM_UP_TEXT, voice, seed=0, max_patches=3)
        work = StepInput(arrivals=(("warm-up", request),))
        while True:
            ((_, result),) = self.step(work)
            if isinstance(result, Exception):
                raise result
            if result.last:
                break
            work = StepInput()
        self._tally = Tally()

    def _check(self, request: TalkerRequest) -> Waiting:
        if request.voice not in self._model.voices:
            known = ", ".join(self._model.voices)
            raise UnknownVoice(f"unknown voice {request.voice!r}; known: {known}", param="voice")
        voice = self._model.voices[request.voice]
        prompt = self._model.tokenizer.assemble(
            SpeechPrompt(
                request.text,
                prompt_text=voice.text,
                prompt_patches=len(voice.embeds),
                speakers=0 if voice.speaker is None else 1,
            )
        )
        limit = patch_limit(request.text, request.max_patches, len(prompt.ids), self._limits)
        return Waiting(request, prompt, limit)

    def _admit(self) -> None:
        queues = self._queues
        for request_id, slot in assign(queues.waiting, queues.free):
            waiting = queues.waiting.pop(request_id)
            queues.free.remove(slot)
            self._prefill(slot, waiting)
            length = len(waiting.prompt.ids) - 1
            trimmer = SilenceTrimmer(self._rate)
            queues.running[request_id] = Running(slot, waiting.limit, length, trimmer)

    @torch.inference_mode()
    def _prefill(self, slot: int, waiting: Waiting) -> None:
        talker, request = self._model.talker, waiting.request
        voice = self._model.voices[request.voice]
        speakers = None if voice.speaker is None else voice.speaker[None]
        embeddings = embed_prompt(talker, waiting.prompt, speakers, voice.embeds)
        history = initial_history(talker, voice.latents)
        self._slots.prefill(slot, embeddings, history, request.seed, request.segment)
        self._streams.reset(slot)

    def _advance(self, request_ids: list[str]) -> StepResults:
        """One patch for each of the requests."""
        if not request_ids:
            return []
        running = [self._queues.running[request_id] for request_id in request_ids]
        slots = torch.tensor([one.slot for one in running])
        span = self._slots.span(max(one.length for one in running))
        index = slots.to(self._slots.lengths.device)
        out = decode_step(self._model.talker, self._slots, index, span, self._sampling)
        last = [
            is_last(one.patches, stop, one.limit, self._limits)
            for one, stop in zip(running, out.stop.tolist(), strict=True)
        ]
        pcm = self._streams.decode(slots, out.latents, torch.tensor(last))
        self._tally.steps += 1
        return [
            (request_id, self._chunk(request_id, samples, ends))
            for request_id, samples, ends in zip(request_ids, pcm, last, strict=True)
        ]

    def _chunk(self, request_id: str, pcm: torch.Tensor, last: bool) -> TalkerChunk:
        """Trim a request's new samples, and count them; a last chunk frees the slot."""
        running = self._queues.running[request_id]
        running.length += 1
        running.patches += 1
        samples = running.trimmer.push(pcm.numpy(), last)
        self._tally.patches += 1
        self._tally.audio_seconds += len(samples) / self._rate
        if last:
            self._queues.release(request_id)
            self._tally.finished += 1
        return TalkerChunk(samples, patches=1, last=last)

    def _cancel(self, request_id: str) -> None:
        self._tally.aborted += 1
        if self._queues.waiting.pop(request_id, None) is None:
            self._queues.release(request_id)


def open_worker(settings: TalkerSettings) -> TalkerWorker:
    """Load the talker of `settings.checkpoint` and warm it up.

    Raises `CheckpointError` for an incomplete checkpoint or one without voices, and `ConfigError`
    for an unknown dtype.
    """
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    worker = TalkerWorker(load_speech_model(settings), settings)
    report_progress("warming up")
    worker.warm_up()
    return worker


def load_speech_model(settings: TalkerSettings) -> SpeechModel:
    """Read the modules, the tokenizer and the voices below `settings.checkpoint / "talker"`."""
    if settings.dtype not in DTYPES:
        raise ConfigError(f"talker dtype {settings.dtype!r} is not one of {', '.join(DTYPES)}")
    device, dtype = torch.device(settings.device), DTYPES[settings.dtype]
    folder = settings.checkpoint / "talker"
    report_progress("loading talker weights")
    talker = load_talker(folder, device, dtype)
    vae = load_vae(folder / "vae", device, dtype)
    report_progress("registering voices")
    voices = load_voices(settings.checkpoint, talker, vae, device)
    if not voices:
        raise CheckpointError(f"{folder} names no voice")
    return SpeechModel(talker, vae, PromptTokenizer(folder), voices)
