"""Quantize the experts of a checkpoint to four bits by what chats give them as inputs.

The plain thinker runs over the chats layer by layer. Each expert is quantized with the inputs that
its tokens give it, and its outputs with four bits are what the next layer sees. Attention and
dense layers are computed with their original weights; FP8 changes them little. Each layer has a
file, so that an interrupted run goes on with the next layer.
"""

import json
from collections.abc import Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from typing import NoReturn

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor
from tqdm import tqdm

from sglang_omni.models.calibration import CalibrationChat, CalibrationReport
from sglang_omni.models.ming.prompt.chat import render_whole_chat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.int4.compensation import measure_moment, quantize_compensated
from sglang_omni.models.ming.thinker.int4.layout import is_expert_matrix
from sglang_omni.models.ming.thinker.int4.weights import (
    Int4Matrix,
    dequantize_int4,
    name_int4_tensors,
    pad_expert,
    quantize_int4,
    read_int4_matrix,
)
from sglang_omni.models.ming.thinker.layerwise import (
    MAX_ROWS,
    Expert,
    PromptStates,
    layer_prefix,
    load_expert,
    load_layer,
)
from sglang_omni.models.ming.thinker.reference import ReferenceLayer
from sglang_omni.models.weights import TensorFolder, save_tensors
from sglang_omni.protocol.errors import StartupError

MAX_TOKENS = 131_072
"""Tokens of all chats: with a hidden size of 4,096 their states take 2 GB."""
MAX_CHAT_TOKENS = 4_096
"""Tokens of one chat; those after them are left out."""
MIN_INPUTS = 32
"""An expert with fewer tokens is quantized without them."""
PARTS = ("gate", "up", "down")
NUM_INPUTS = "num_inputs"
"""Key of a file's metadata: the tokens of each expert, as JSON."""

CalibratedExpert = dict[str, Int4Matrix]


def list_prompts(tokenizer: ThinkerTokenizer, chats: Sequence[CalibrationChat]) -> list[list[int]]:
    """Return the tokens of the first chats, at most `MAX_TOKENS` in all.

    Raises:
        InvalidRequest: The messages do not make a chat.
    """
    prompts = [
        list(tokenizer.encode(render_whole_chat(chat.messages, chat.thinking, chat.tools)).ids)
        for chat in chats
    ]
    short = [prompt[:MAX_CHAT_TOKENS] for prompt in prompts]
    totals = accumulate(map(len, short))
    kept = len(list(takewhile(lambda total: total <= MAX_TOKENS, totals)))
    return short[:kept]


def calibrate_expert(expert: Expert, inputs: Tensor, symmetric: bool) -> CalibratedExpert:
    """Quantize an expert by its inputs [tokens, hidden]: its matrices by part.

    `down` is quantized by what gate and up give in four bits.
    """
    if len(inputs) < MIN_INPUTS:
        return {part: quantize_int4(_pad(part, getattr(expert, part)), symmetric) for part in PARTS}
    # Gate and up have the same inputs.
    moment = measure_moment(inputs)
    both = torch.cat([_pad(part, getattr(expert, part)) for part in ("gate", "up")])
    gate, up = quantize_compensated(both, moment, symmetric).chunk_rows(2)
    rounded = Expert(_restore(gate, expert.gate), _restore(up, expert.up), expert.down)
    activated = torch.cat([rounded.activate(rows) for rows in inputs.split(MAX_ROWS)])
    down = quantize_compensated(_pad("down", expert.down), measure_moment(activated), symmetric)
    return {"gate": gate, "up": up, "down": down}


def restore_expert(matrices: CalibratedExpert, original: Expert) -> Expert:
    """Return the float32 matrices of a quantized expert, in the sizes of the original."""
    return Expert(*(_restore(matrices[part], getattr(original, part)) for part in PARTS))


def _restore(matrix: Int4Matrix, original: Tensor) -> Tensor:
    rows, columns = original.shape
    return dequantize_int4(matrix)[:rows, :columns]


def _pad(part: str, weight: Tensor) -> Tensor:
    return pad_expert(f".{part}_proj.weight", weight)


class ExpertCalibrator:
    """Implements `Calibrator`."""

    def __init__(
        self, checkpoint: Path, chats: Sequence[CalibrationChat], symmetric: bool, device: str
    ) -> None:
        """Tokenize the chats.

        Raises:
            CheckpointError: A file of the checkpoint is missing or malformed.
            StartupError: There is no chat, or no such device.
        """
        self._config = MingConfig.from_pretrained(checkpoint).llm_config
        self._tensors = TensorFolder(checkpoint)
        self._prompts = list_prompts(ThinkerTokenizer(checkpoint), chats)
        self._num_chats = len(chats)
        self._symmetric = symmetric
        if not self._prompts:
            raise StartupError("the calibration has no chat")
        try:
            self._device = torch.empty(0, device=device).device
        except (RuntimeError, AssertionError) as error:
            raise StartupError(f"cannot calibrate on {device!r}: {error}") from error

    def covers(self, name: str) -> bool:
        """Whether a tensor is an expert's matrix."""
        return is_expert_matrix(name)

    @torch.inference_mode()
    def write_files(self, target: Path) -> CalibrationReport:
        """Write a file for each sparse layer. Raises `CheckpointError` for a missing tensor."""
        states = PromptStates(self._tensors, self._config, self._prompts, self._device)
        files: list[Path] = []
        num_layers = self._config.num_hidden_layers
        num_sparse = num_layers - self._config.first_k_dense_replace
        num_experts = num_sparse * (self._config.num_experts + 1)
        with tqdm(total=num_experts, desc="calibrating", unit="expert") as bar:
            for index in range(num_layers):
                layer = load_layer(self._tensors, self._config, index, self._device)
                states.attend(layer)
                if not layer.sparse:
                    states.add_dense(layer)
                    continue
                files.append(target / f"experts-of-layer-{index:03d}.safetensors")
                self._calibrate_layer(index, layer, states, files[-1], bar)
        return self._report(files)

    def _calibrate_layer(
        self,
        index: int,
        layer: ReferenceLayer,
        states: PromptStates,
        path: Path,
        bar: "tqdm[NoReturn]",
    ) -> None:
        """Write the experts of a layer, unless an earlier run did, and add their outputs."""
        written = load_file(path) if path.exists() else None
        outputs = states.zeros()
        tensors: dict[str, Tensor] = {}
        num_inputs: dict[str, int] = {}
        for routed in states.route(layer):
            stem = layer_prefix(index) + routed.expert
            original = load_expert(self._tensors, stem, self._device)
            inputs = states.normalize(layer, routed.places)
            if written is None:
                matrices = calibrate_expert(original, inputs, self._symmetric)
                tensors |= name_expert_tensors(stem, matrices)
                num_inputs[routed.expert] = len(inputs)
            else:
                matrices = {
                    part: read_int4_matrix(f"{stem}{part}_proj.weight", written).to(self._device)
                    for part in PARTS
                }
            routed.add_outputs(outputs, restore_expert(matrices, original), inputs)
            bar.update()
        if written is None:
            save_tensors(path, tensors, {NUM_INPUTS: json.dumps(num_inputs)})
        states.add(outputs)

    def _report(self, files: Sequence[Path]) -> CalibrationReport:
        num_inputs = [count for path in files for count in read_num_inputs(path).values()]
        few = sum(count < MIN_INPUTS for count in num_inputs)
        full = sum(len(prompt) == MAX_CHAT_TOKENS for prompt in self._prompts)
        num_tokens = sum(map(len, self._prompts))
        lines = [
            f"calibrated {len(num_inputs) - few:,} of {len(num_inputs):,} experts with "
            f"{num_tokens:,} tokens of {len(self._prompts):,} of {self._num_chats:,} chats"
        ]
        if few:
            lines.append(f"{few:,} experts saw fewer than {MIN_INPUTS} tokens: not calibrated")
        if full:
            lines.append(f"{full:,} chats are used up to {MAX_CHAT_TOKENS:,} tokens")
        return CalibrationReport(tuple(path.name for path in files), tuple(lines))


def name_expert_tensors(stem: str, matrices: CalibratedExpert) -> dict[str, Tensor]:
    """Return the stored tensors of an expert whose names begin with `stem`, on the CPU."""
    return {
        name: tensor.cpu()
        for part in PARTS
        for name, tensor in name_int4_tensors(f"{stem}{part}_proj.weight", matrices[part]).items()
    }


def read_num_inputs(path: Path) -> dict[str, int]:
    """Return the number of tokens that each expert of a layer's file was calibrated with."""
    with safe_open(path, framework="pt") as file:
        counts: dict[str, int] = json.loads(file.metadata()[NUM_INPUTS])
    return counts
