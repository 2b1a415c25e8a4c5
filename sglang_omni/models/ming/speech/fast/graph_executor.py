"""The talker's executor for CUDA: graphs replayed on two streams, the host never in between.

The first stream prefills and steps, the second decodes what a step completed while the next step
runs. The host reads two things of a step: the stop probabilities, which are ready while the patch
is still being made, and the samples, after the next step has been queued.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from sglang_omni.engines.runtime.worker import report_progress
from sglang_omni.engines.speech.pacing import StepTimes
from sglang_omni.engines.speech.scheduler import PATCH_SECONDS
from sglang_omni.kernels.pdl import supports_pdl
from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.speech.executor import Admission
from sglang_omni.models.ming.speech.fast.fp8 import Fp8Ops
from sglang_omni.models.ming.speech.fast.graphs import (
    BATCHES,
    Graph,
    HostUpload,
    bucket_for,
    host_buffer,
)
from sglang_omni.models.ming.speech.fast.ops import FusedOps, LibraryOps, Ops
from sglang_omni.models.ming.speech.fast.prefill import (
    PROMPT_ROWS,
    PROMPTS,
    PackedPrefill,
    VoiceTable,
    pack,
    take,
)
from sglang_omni.models.ming.speech.fast.state import SlotState
from sglang_omni.models.ming.speech.fast.step import FastStep
from sglang_omni.models.ming.speech.fast.tiling import FEW_ROWS, FP8_ROWS
from sglang_omni.models.ming.speech.fast.vocoder import FastVocoder
from sglang_omni.models.ming.speech.loading import SpeechModel

PREFILL_TOKENS = (64, 128, 256, 512, 1024, 2048)
"""Sizes of a prefill pass that have a graph."""
SCRATCH = 1 << 23
PACE_RUNS = 3
USUAL_PROMPT = 256


@dataclass(frozen=True)
class Unit:
    """One decoded patch: which of the stepped rows it belongs to, and where its samples lie."""

    row: int
    slot: int
    patch: int
    final: bool


class GraphExecutor:
    """Owns the slots on the device, every graph, and both streams."""

    overlaps = True

    def __init__(
        self,
        model: SpeechModel,
        slots: int,
        context: int,
        max_patches: int,
        *,
        fp8: bool = False,
    ) -> None:
        self._fp8 = fp8
        self._device = model.talker.stop_head.weight.device
        self.width = min(slots, BATCHES[-1])
        largest = bucket_for(self.width, BATCHES)
        self._sizes = tuple(size for size in BATCHES if size <= largest)
        self.state = SlotState(model.talker, slots, context)
        self._step = FastStep(model.talker, self.state, fp8=fp8)
        self._vocoder = FastVocoder(model.vae, self.state, max_patches)
        self._voices = VoiceTable(model.talker, model.voices)
        backbone = self._step.backbone
        self._prefill = PackedPrefill(model.talker, backbone, self.state, self._voices)
        self._prefill_sizes = (*(size for size in PREFILL_TOKENS if size < context), context)
        self._made = [0] * slots
        self._stepped: list[int] = []
        self._units: list[Unit] = []
        self._rows = 0
        self._allocate()
        self._capture()
        self.pace: StepTimes | None = self._measure_pace()

    def _allocate(self) -> None:
        device, largest = self._device, self._sizes[-1]
        self.steps, self._decodes = torch.cuda.Stream(device), torch.cuda.Stream(device)
        # Graphs know memory by its address alone: whatever was allocated before their capture and
        # is used in them must live as long as they do.
        self._space_of_steps = Workspace(SCRATCH, device)
        self._space_of_decodes = Workspace(SCRATCH, device)
        self._index = HostUpload((largest,), device)
        self._unit_rows = HostUpload((3, largest), device)
        self._tokens = {size: HostUpload((4, size), device) for size in self._prefill_sizes}
        self._prompts = HostUpload((PROMPT_ROWS, PROMPTS), device)
        self._looked, self._made_patch, self._decoded = (torch.cuda.Event() for _ in range(3))
        self._stop = host_buffer(largest)
        samples = self._vocoder.unit_samples + self._vocoder.crop
        self._pcm = host_buffer(2 * largest, samples)

    def _capture(self) -> None:
        """Capture every graph; the decoder's use memory of their own, for they run beside steps."""
        report_progress("capturing the talker's graphs")
        self._index.device.fill_(self.state.spare)
        self._unit_rows.device[0].fill_(self.state.spare)
        for upload in self._tokens.values():
            upload.device[2].fill_(self.state.spare)
        self._prompts.device[1].fill_(self.state.spare)
        torch.cuda.synchronize()
        pool = torch.cuda.graph_pool_handle()
        with torch.cuda.stream(self.steps):
            space = self._space_of_steps
            self._prefills = {
                size: Graph(lambda size=size: self._run_prefill(size), pool)  # type: ignore[misc]
                for size in reversed(self._prefill_sizes)
            }
            self._looks = {}
            self._makes = {}
            for size in reversed(self._sizes):
                index = self._index.device[:size]
                ops_for = partial(self._ops, space)
                few = ops_for(size)
                look = Graph(lambda i=index, o=few: self._look(i, o), pool)  # type: ignore[misc]
                make = Graph(
                    lambda i=index, h=look.output, o=ops_for: self._step.sample_patch(i, h, o),  # type: ignore[misc]
                    pool,
                )
                self._looks[size], self._makes[size] = look, make
        with torch.cuda.stream(self._decodes):
            pool, space = torch.cuda.graph_pool_handle(), self._space_of_decodes
            self._vocoders = {
                size: Graph(lambda size=size: self._decode(size, space), pool)  # type: ignore[misc]
                for size in reversed(self._sizes)
            }
        torch.cuda.synchronize()

    def _measure_pace(self) -> StepTimes:
        """Time every graph on the spare slot; the sum of a step's parts leaves out overlap."""
        report_progress("timing the talker's graphs")
        seconds = [sum(self.time_parts(size, PACE_RUNS).values()) / 1e3 for size in self._sizes]
        size = bucket_for(min(USUAL_PROMPT, self.state.context), self._prefill_sizes)
        prefill = _milliseconds(self._prefills[size].replay, PACE_RUNS) / 1e3
        return StepTimes(tuple(zip(self._sizes, seconds, strict=True)), prefill, PATCH_SECONDS)

    def _ops(self, space: Workspace, rows: int) -> Ops:
        if rows <= FEW_ROWS:
            return FusedOps(space, chained=supports_pdl())
        return Fp8Ops() if self._fp8 and rows >= FP8_ROWS else LibraryOps()

    def _run_prefill(self, size: int) -> None:
        self._prefill.run(self._tokens[size].device, self._prompts.device, LibraryOps())

    def _look(self, index: Tensor, ops: Ops) -> Tensor:
        hidden, stop = self._step.run_backbone(index, ops)
        self._stop[: len(index)].copy_(stop, non_blocking=True)
        return hidden

    def _decode(self, size: int, space: Workspace) -> Tensor:
        index, patches, final = self._unit_rows.device[:, :size].unbind()
        ops = self._ops(space, size * self._vocoder.frames)
        return self._vocoder.decode(index, patches, final, ops)

    def prefill(self, admissions: Sequence[Admission]) -> None:
        for one in admissions:
            self._made[one.slot] = 0
        with torch.cuda.stream(self.steps):
            # A voice that a request brought was made ready on the usual stream.
            self.steps.wait_stream(torch.cuda.default_stream(self._device))
            while admissions:
                count = take(admissions, self._prefill_sizes[-1])
                self._prefill_some(admissions[:count])
                admissions = admissions[count:]

    def _prefill_some(self, admissions: Sequence[Admission]) -> None:
        total = sum(len(one.prompt.ids) - 1 for one in admissions)
        size = bucket_for(total, self._prefill_sizes)
        packed = pack(admissions, self._voices, size, self.state.spare)
        self._tokens[size].send(packed.tokens)
        self._prompts.send(packed.prompts)
        self._prefills[size].replay()

    def begin(self, slots: Sequence[int]) -> None:
        self._stepped = list(slots)
        size = bucket_for(len(slots), self._sizes)
        with torch.cuda.stream(self.steps):
            self._index.send(self._filled(slots, self._sizes[-1]))
            self._looks[size].replay()
            self._looked.record()
            self._makes[size].replay()
            self._made_patch.record()
        for slot in slots:
            self._made[slot] += 1

    def stops(self) -> list[float]:
        self._looked.synchronize()
        return self._stop[: len(self._stepped)].tolist()

    def finish(self, last: Sequence[bool]) -> None:
        held = [
            Unit(row, slot, self._made[slot] - 2, False)
            for row, slot in enumerate(self._stepped)
            if self._made[slot] > 1
        ]
        ended = [
            Unit(row, slot, self._made[slot] - 1, True)
            for row, (slot, ends) in enumerate(zip(self._stepped, last, strict=True))
            if ends
        ]
        with torch.cuda.stream(self._decodes):
            self._decodes.wait_event(self._made_patch)
            self._queue_units(held, 0)
            self._queue_units(ended, len(held))
            self._decoded.record()
        self._units, self._rows = held + ended, len(self._stepped)

    def _queue_units(self, units: list[Unit], first: int) -> None:
        if not units:
            return
        size = bucket_for(len(units), self._sizes)
        rows = np.zeros(self._unit_rows.device.shape, np.int64)
        rows[0] = self._filled([unit.slot for unit in units], rows.shape[1])
        rows[1, : len(units)] = [unit.patch for unit in units]
        rows[2, : len(units)] = [unit.final for unit in units]
        self._unit_rows.send(rows)
        graph = self._vocoders[size]
        graph.replay()
        count = len(units)
        self._pcm[first : first + count].copy_(graph.output[:count], non_blocking=True)

    def collect(self) -> list[np.ndarray]:
        self._decoded.synchronize()
        pieces: list[list[np.ndarray]] = [[] for _ in range(self._rows)]
        pcm, full, crop = self._pcm.numpy(), self._vocoder.unit_samples, self._vocoder.crop
        for place, unit in enumerate(self._units):
            start = crop if unit.patch == 0 else 0
            pieces[unit.row].append(pcm[place, start : full + (crop if unit.final else 0)])
        empty = np.zeros(0, np.float32)
        return [np.concatenate([empty, *parts]) for parts in pieces]

    def parts(self, batch: int) -> dict[str, Callable[[], None]]:
        """What replays each graph of a step at a batch size, on the current stream."""
        size = bucket_for(batch, self._sizes)
        return {
            "backbone": self._looks[size].replay,
            "patch": self._makes[size].replay,
            "vocoder": self._vocoders[size].replay,
        }

    def time_parts(self, batch: int, runs: int) -> dict[str, float]:
        """Milliseconds of each graph alone at a batch size, the median of several replays."""
        return {name: _milliseconds(replay, runs) for name, replay in self.parts(batch).items()}

    def _filled(self, slots: Sequence[int], size: int) -> np.ndarray:
        """Slot numbers [size], the spare slot after the given ones."""
        filled = np.full(size, self.state.spare)
        filled[: len(slots)] = slots
        return filled


def _milliseconds(run: Callable[[], None], runs: int) -> float:
    """Median time of a call on the current stream."""
    times = []
    for _ in range(runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)
