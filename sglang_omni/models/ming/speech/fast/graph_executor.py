"""The talker's executor for CUDA devices: graphs replayed on two streams.

The first stream prefills and steps; the second decodes the audio of a step while the next step
runs. The host reads two results of a step: the stop probabilities, which are ready while the
patch is still being generated, and the samples, after the next step has been queued.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from sglang_omni.kernels.pdl import supports_pdl
from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.speech.fast.fp8 import Fp8Ops
from sglang_omni.models.ming.speech.fast.graphs import (
    BATCH_SIZES,
    Graph,
    HostUpload,
    allocate_pinned,
    select_bucket,
)
from sglang_omni.models.ming.speech.fast.ops import FusedOps, LibraryOps, Ops
from sglang_omni.models.ming.speech.fast.prefill import (
    MAX_PROMPTS,
    PROMPT_FIELDS,
    PackedPrefill,
    VoiceTable,
    count_fitting,
    pack_prompts,
)
from sglang_omni.models.ming.speech.fast.state import SlotState
from sglang_omni.models.ming.speech.fast.step import FastStep
from sglang_omni.models.ming.speech.fast.tiling import MAX_SMALL_BATCH_ROWS, MIN_FP8_ROWS
from sglang_omni.models.ming.speech.fast.vocoder import FastVocoder
from sglang_omni.models.ming.speech.modules import SpeechModules
from sglang_omni.models.speech import Admission, StepTimes
from sglang_omni.system.progress import report_progress

PREFILL_SIZES = (64, 128, 256, 512, 1024, 2048)
"""Token counts of prefill passes that have a graph."""
WORKSPACE_SIZE = 1 << 23
TIMING_RUNS = 3
TYPICAL_PROMPT_TOKENS = 256


@dataclass(frozen=True)
class Unit:
    """A decoded patch: its row in the step, its slot and number, and whether it is the last."""

    row: int
    slot: int
    patch: int
    final: bool


class GraphExecutor:
    """Own the slots on the device, all graphs and both streams."""

    overlaps = True

    def __init__(
        self,
        model: SpeechModules,
        slots: int,
        context: int,
        max_patches: int,
        *,
        fp8: bool = False,
    ) -> None:
        self._fp8, self._patch_s = fp8, model.patch_s
        self._device = model.talker.stop_head.weight.device
        self.max_batch_size = min(slots, BATCH_SIZES[-1])
        largest = select_bucket(self.max_batch_size, BATCH_SIZES)
        self._sizes = tuple(size for size in BATCH_SIZES if size <= largest)
        self.state = SlotState(model.talker, slots, context)
        self._step = FastStep(model.talker, self.state, fp8=fp8)
        self._vocoder = FastVocoder(model.vae, self.state, max_patches)
        self._voices = VoiceTable(model.talker, model.voices)
        backbone = self._step.backbone
        self._prefill = PackedPrefill(model.talker, backbone, self.state, self._voices)
        self._prefill_sizes = (*(size for size in PREFILL_SIZES if size < context), context)
        self._num_patches = [0] * slots
        self._step_slots: list[int] = []
        self._units: list[Unit] = []
        self._rows = 0
        self._allocate()
        self._capture_graphs()
        self.step_times: StepTimes | None = self._measure_step_times()

    def _allocate(self) -> None:
        device, largest = self._device, self._sizes[-1]
        self.steps, self._decode_stream = torch.cuda.Stream(device), torch.cuda.Stream(device)
        # Graphs refer to memory by address: whatever was allocated before capture and is used in
        # them must live as long as the graphs.
        self._step_workspace = Workspace(WORKSPACE_SIZE, device)
        self._decode_workspace = Workspace(WORKSPACE_SIZE, device)
        self._index = HostUpload((largest,), device)
        self._unit_rows = HostUpload((3, largest), device)
        self._tokens = {size: HostUpload((4, size), device) for size in self._prefill_sizes}
        self._prompts = HostUpload((PROMPT_FIELDS, MAX_PROMPTS), device)
        self._stop_ready, self._patch_ready, self._samples_ready = (
            torch.cuda.Event() for _ in range(3)
        )
        self._stop = allocate_pinned(largest)
        samples = self._vocoder.unit_samples + self._vocoder.crop
        self._pcm = allocate_pinned(2 * largest, samples)

    def _capture_graphs(self) -> None:
        """Capture all graphs. Vocoder graphs overlap steps, so they have their own memory pool."""
        report_progress("capturing the talker's graphs")
        self._index.device.fill_(self.state.spare)
        self._unit_rows.device[0].fill_(self.state.spare)
        for upload in self._tokens.values():
            upload.device[2].fill_(self.state.spare)
        self._prompts.device[1].fill_(self.state.spare)
        torch.cuda.synchronize()
        pool = torch.cuda.graph_pool_handle()
        with torch.cuda.stream(self.steps):
            workspace = self._step_workspace
            self._prefill_graphs = {
                size: Graph(lambda size=size: self._run_prefill(size), pool)  # type: ignore[misc]
                for size in reversed(self._prefill_sizes)
            }
            self._backbone_graphs = {}
            self._patch_graphs = {}
            for size in reversed(self._sizes):
                index = self._index.device[:size]
                select_ops = partial(self._select_ops, workspace)
                ops = select_ops(size)
                backbone_graph = Graph(lambda i=index, o=ops: self._run_backbone(i, o), pool)  # type: ignore[misc]
                hidden = backbone_graph.output
                patch_graph = Graph(
                    lambda i=index, h=hidden, o=select_ops: self._step.sample_patch(i, h, o),  # type: ignore[misc]
                    pool,
                )
                self._backbone_graphs[size], self._patch_graphs[size] = backbone_graph, patch_graph
        with torch.cuda.stream(self._decode_stream):
            pool, workspace = torch.cuda.graph_pool_handle(), self._decode_workspace
            self._vocoder_graphs = {
                size: Graph(lambda size=size: self._run_vocoder(size, workspace), pool)  # type: ignore[misc]
                for size in reversed(self._sizes)
            }
        torch.cuda.synchronize()

    def _measure_step_times(self) -> StepTimes:
        """Time every graph on the spare slot. The sum of the parts of a step ignores overlap."""
        report_progress("timing the talker's graphs")
        seconds = [sum(self.time_parts(size, TIMING_RUNS).values()) / 1e3 for size in self._sizes]
        size = select_bucket(min(TYPICAL_PROMPT_TOKENS, self.state.context), self._prefill_sizes)
        prefill = _time_ms(self._prefill_graphs[size].replay, TIMING_RUNS) / 1e3
        return StepTimes(
            tuple(zip(self._sizes, seconds, strict=True)), prefill, patch_s=self._patch_s
        )

    def _select_ops(self, workspace: Workspace, rows: int) -> Ops:
        if rows <= MAX_SMALL_BATCH_ROWS:
            return FusedOps(workspace, pdl=supports_pdl())
        return Fp8Ops() if self._fp8 and rows >= MIN_FP8_ROWS else LibraryOps()

    def _run_prefill(self, size: int) -> None:
        self._prefill.run(self._tokens[size].device, self._prompts.device, LibraryOps())

    def _run_backbone(self, index: Tensor, ops: Ops) -> Tensor:
        hidden, stop = self._step.run_backbone(index, ops)
        self._stop[: len(index)].copy_(stop, non_blocking=True)
        return hidden

    def _run_vocoder(self, size: int, workspace: Workspace) -> Tensor:
        index, patches, final = self._unit_rows.device[:, :size].unbind()
        ops = self._select_ops(workspace, size * self._vocoder.frames)
        return self._vocoder.decode(index, patches, final, ops)

    def prefill(self, admissions: Sequence[Admission]) -> None:
        """Start requests in free slots, as many in a pass as fit the largest graph."""
        for admission in admissions:
            self._num_patches[admission.slot] = 0
        with torch.cuda.stream(self.steps):
            # Voices that requests bring are encoded on the default stream.
            self.steps.wait_stream(torch.cuda.default_stream(self._device))
            while admissions:
                count = count_fitting(admissions, self._prefill_sizes[-1])
                self._prefill_batch(admissions[:count])
                admissions = admissions[count:]

    def _prefill_batch(self, admissions: Sequence[Admission]) -> None:
        total = sum(len(admission.input.prompt.ids) - 1 for admission in admissions)
        size = select_bucket(total, self._prefill_sizes)
        packed = pack_prompts(admissions, self._voices, size, self.state.spare)
        self._tokens[size].send(packed.tokens)
        self._prompts.send(packed.prompts)
        self._prefill_graphs[size].replay()

    def begin(self, slots: Sequence[int]) -> None:
        """Queue the graphs of a step for these slots on the stream of the steps."""
        self._step_slots = list(slots)
        size = select_bucket(len(slots), self._sizes)
        with torch.cuda.stream(self.steps):
            self._index.send(self._pad_slots(slots, self._sizes[-1]))
            self._backbone_graphs[size].replay()
            self._stop_ready.record()
            self._patch_graphs[size].replay()
            self._patch_ready.record()
        for slot in slots:
            self._num_patches[slot] += 1

    def read_stop_probabilities(self) -> list[float]:
        """Wait for the backbone, and return the stop probabilities, one per slot."""
        self._stop_ready.synchronize()
        return self._stop[: len(self._step_slots)].tolist()

    def finish(self, last: Sequence[bool]) -> None:
        """Queue the decoding of the patches that are complete; `last` marks streams that end."""
        held_units = [
            Unit(row, slot, self._num_patches[slot] - 2, False)
            for row, slot in enumerate(self._step_slots)
            if self._num_patches[slot] > 1
        ]
        ended_units = [
            Unit(row, slot, self._num_patches[slot] - 1, True)
            for row, (slot, is_last) in enumerate(zip(self._step_slots, last, strict=True))
            if is_last
        ]
        with torch.cuda.stream(self._decode_stream):
            self._decode_stream.wait_event(self._patch_ready)
            self._queue_units(held_units, 0)
            self._queue_units(ended_units, len(held_units))
            self._samples_ready.record()
        self._units, self._rows = held_units + ended_units, len(self._step_slots)

    def _queue_units(self, units: list[Unit], first: int) -> None:
        if not units:
            return
        size = select_bucket(len(units), self._sizes)
        rows = np.zeros(self._unit_rows.device.shape, np.int64)
        rows[0] = self._pad_slots([unit.slot for unit in units], rows.shape[1])
        rows[1, : len(units)] = [unit.patch for unit in units]
        rows[2, : len(units)] = [unit.final for unit in units]
        self._unit_rows.send(rows)
        graph = self._vocoder_graphs[size]
        graph.replay()
        count = len(units)
        self._pcm[first : first + count].copy_(graph.output[:count], non_blocking=True)

    def collect(self) -> list[np.ndarray]:
        """Wait for the samples of the last `finish`; return float32 [samples] per slot."""
        self._samples_ready.synchronize()
        parts: list[list[np.ndarray]] = [[] for _ in range(self._rows)]
        pcm, full, crop = self._pcm.numpy(), self._vocoder.unit_samples, self._vocoder.crop
        for index, unit in enumerate(self._units):
            start = crop if unit.patch == 0 else 0
            parts[unit.row].append(pcm[index, start : full + (crop if unit.final else 0)])
        empty = np.zeros(0, np.float32)
        return [np.concatenate([empty, *row_parts]) for row_parts in parts]

    def parts(self, batch: int) -> dict[str, Callable[[], None]]:
        """Return functions that replay the graphs of a step on the current stream, by name."""
        size = select_bucket(batch, self._sizes)
        return {
            "backbone": self._backbone_graphs[size].replay,
            "patch": self._patch_graphs[size].replay,
            "vocoder": self._vocoder_graphs[size].replay,
        }

    def time_parts(self, batch: int, runs: int) -> dict[str, float]:
        """Return the median duration in ms of each graph of a step, replayed alone."""
        return {name: _time_ms(replay, runs) for name, replay in self.parts(batch).items()}

    def _pad_slots(self, slots: Sequence[int], size: int) -> np.ndarray:
        """Return slot numbers [size]: the given slots, then the spare slot."""
        padded = np.full(size, self.state.spare)
        padded[: len(slots)] = slots
        return padded


def _time_ms(run: Callable[[], None], runs: int) -> float:
    """Return the median duration of a call on the current stream, in ms."""
    durations_ms = []
    for _ in range(runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        durations_ms.append(start.elapsed_time(end))
    return statistics.median(durations_ms)
