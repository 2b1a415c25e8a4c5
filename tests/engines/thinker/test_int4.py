"""The engine on a checkpoint in four bits says what the plain model of its weights says.

SGLang's own scheduler runs it, on one rank and on two, with its loaders and this project's experts.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.thinker.contract import ThinkerRequest
from sglang_omni.entrypoints.cli.quantize import quantize
from sglang_omni.models.base import WeightForm
from sglang_omni.models.ming.thinker.fp8 import dequantize_weight
from sglang_omni.models.ming.thinker.fp8_layout import SCALE_SUFFIX
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.int4.layout import GROUP, is_expert_matrix, strip_weight
from sglang_omni.models.ming.thinker.int4.weights import Int4Matrix, dequantize_int4
from sglang_omni.models.ming.thinker.reference import ThinkerReference, load_reference
from sglang_omni.models.weights import TensorFolder
from sglang_omni.protocol.sampling import SamplingParams
from tests.engines.thinker.conftest import thinker
from tests.entrypoints.cli.quantised import write_wide_checkpoint
from tests.models.ming.thinker.int4.writers import PUBLISHED, Published, draw_quantized

pytestmark = pytest.mark.long

TOKENS = 12


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("int4") / "bf16"
    # Two ranks have a whole group each.
    write_wide_checkpoint(folder, 2 * GROUP)
    return folder


def read_dequantized(source: Path, target: Path) -> Iterator[tuple[str, Tensor]]:
    """Yield names and values of the weights that a checkpoint of this project stands for."""
    stored = TensorFolder(target)
    for name in TensorFolder(source):
        if is_expert_matrix(name):
            stem = strip_weight(name)
            parts = [stem + part for part in ("packed", "scale", "zero")]
            yield name, dequantize_int4(Int4Matrix(*(stored[p] for p in parts if p in stored)))
        elif name + SCALE_SUFFIX in stored:
            yield name, dequantize_weight(stored[name], stored[name + SCALE_SUFFIX])


def write_published(source: Path, target: Path, layout: Published) -> Iterator[tuple[str, Tensor]]:
    """Write a checkpoint with drawn experts in a published layout; yield what they stand for."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("model-*", "*.index.json"))
    tensors: dict[str, Tensor] = {}
    for number, (name, tensor) in enumerate(TensorFolder(source).items()):
        if not is_expert_matrix(name):
            tensors[name] = tensor
            continue
        rows, columns = tensor.shape
        drawn = draw_quantized(rows, columns, layout.dtype, layout.symmetric, number)
        stem = strip_weight(name)
        tensors |= {stem + suffix: part for suffix, part in layout.write(drawn).items()}
        yield name, drawn.restore()
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = layout.config
    (target / "config.json").write_text(json.dumps(config), encoding="utf-8")


def build_model(source: Path, weights: Mapping[str, Tensor]) -> ThinkerReference:
    """The plain model of the source, with these weights instead of its own."""
    model = load_reference(source, MingConfig.from_pretrained(source).llm_config)
    parameters = dict(model.named_parameters())
    for name, weight in weights.items():
        parameters[name.removeprefix("model.")].data.copy_(weight)
    return model


@torch.no_grad()
def continue_greedily(model: ThinkerReference, ids: list[int]) -> Iterator[int]:
    """Yield the likeliest tokens, each after all before it."""
    tokens = list(ids)
    for _ in range(TOKENS):
        positions = torch.arange(len(tokens)).expand(3, -1)
        text = torch.zeros(len(tokens), dtype=torch.uint8)
        x = model.model.word_embeddings(torch.tensor(tokens))
        tokens.append(int(model(x, positions, text)[-1].argmax()))
        yield tokens[-1]


async def generate(process: EngineProcess, ids: list[int]) -> list[int]:
    request = ThinkerRequest(tuple(ids), SamplingParams(max_tokens=TOKENS))
    return [token async for output in process.submit(request) for token in output.token_ids]


async def check_tokens(target: Path, ranks: int, model: ThinkerReference) -> None:
    """The engine's greedy tokens after some prompts are those of the plain model."""
    process = thinker(target, tp_size=ranks)
    await process.start()
    compared = 0
    try:
        for seed in range(4):
            generator = torch.Generator().manual_seed(seed)
            ids = torch.randint(300, 800, (24,), generator=generator).tolist()
            found = await generate(process, ids)
            # The engine stops at the end of the answer.
            assert found == list(continue_greedily(model, ids))[: len(found)], seed
            compared += len(found)
        assert compared > TOKENS
    finally:
        await process.stop()


@pytest.mark.parametrize(("form", "ranks"), [(WeightForm.INT4, 2), (WeightForm.INT4_ASYMMETRIC, 1)])
async def test_greedy_tokens_are_those_of_the_plain_model(
    form: WeightForm, ranks: int, source: Path
) -> None:
    target = source.parent / form
    quantize(source, target, form)
    model = build_model(source, dict(read_dequantized(source, target)))
    await check_tokens(target, ranks, model)


@pytest.mark.parametrize("name", ["compressed-tensors", "awq", "gptq-symmetric"])
async def test_published_layouts_say_what_their_weights_say(name: str, source: Path) -> None:
    target = source.parent / name
    weights = dict(write_published(source, target, PUBLISHED[name]))
    await check_tokens(target, 1, build_model(source, weights))
