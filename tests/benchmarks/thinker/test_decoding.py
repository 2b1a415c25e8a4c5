"""The thinker's benchmark: sane random weights, experts counted, answers scripted, rates right."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.synthetic.random_models.census import FILE, ROWS, ExpertCensus, count_experts_used
from benchmarks.synthetic.random_models.drawing import FP8_STD, INT4_STD, draw_parameters
from benchmarks.synthetic.random_models.scripting import ScriptedAnswer
from benchmarks.synthetic.system_checkpoint import FIRST_SENTENCE, script_ids
from benchmarks.thinker import decoding
from benchmarks.thinker.decoding import (
    STOCK_ALONE,
    Job,
    compare_systems,
    describe_traffic,
    list_systems,
)
from benchmarks.thinker.load import Arrivals, Round, summarise_round
from benchmarks.thinker.shapes import (
    CONSTANTS,
    SHAPE,
    SMALL,
    STOCK_INT4_METHOD,
    build_config,
    write_shape_checkpoint,
)
from benchmarks.thinker.tune_moe import TOKENS, candidates, suits_tokens
from benchmarks.thinker.weight_traffic import shortest_step_ms, step_bytes
from sglang_omni.engines.thinker.moe_configs import (
    build_moe_environment,
    find_version_folder,
    format_file_name,
)
from sglang_omni.models.base import HeadForm
from sglang_omni.models.ming.thinker.fp8_layout import (
    add_scales,
    has_fp8_head,
    is_block_fp8,
    is_quantized,
)
from sglang_omni.models.ming.thinker.hf_config import MingTextConfig
from sglang_omni.models.ming.thinker.int4.layout import (
    is_expert_matrix,
    is_int4,
    list_int4_tensors,
)
from sglang_omni.models.ming.thinker.int4.weights import Int4Matrix, dequantize_int4
from sglang_omni.models.ming.thinker.routing import Routing, select_experts
from sglang_omni.models.ming.thinker.tensors import list_thinker_tensors
from sglang_omni.models.ming.tiny.tokenizers import build_thinker_tokenizer


class Shaped(nn.Module):
    """Parameters under names that SGLang's modules have."""

    def __init__(self) -> None:
        super().__init__()
        for name, shape in {
            "word_embeddings.weight": (300, 256),
            "input_layernorm.weight": (256,),
            "attention.dense.weight": (256, 128),
            "mlp.router.weight": (64, 256),
            "mlp.router.expert_bias": (64,),
        }.items():
            self.register_parameter(name.replace(".", "/"), _blank(shape))
        eight = _blank((256, 256)).to(torch.float8_e4m3fn)
        self.register_parameter("gate_up_proj/weight", nn.Parameter(eight, requires_grad=False))
        self.register_parameter("gate_up_proj/weight_scale_inv", _blank((2, 2)))

    def named_parameters(self, *_: Any, **__: Any) -> Iterator[tuple[str, nn.Parameter]]:
        for name, parameter in super().named_parameters():
            yield name.replace("/", "."), parameter


def _blank(shape: tuple[int, ...]) -> nn.Parameter:
    return nn.Parameter(torch.full(shape, float("nan")), requires_grad=False)


def test_weights_keep_variance_and_routing_even() -> None:
    model = Shaped()
    draw_parameters(model, ranks=2)
    drawn = dict(model.named_parameters())
    assert drawn["input_layernorm.weight"].eq(1).all()
    assert drawn["mlp.router.expert_bias"].eq(0).all()
    assert drawn["word_embeddings.weight"].std() == pytest.approx(1, rel=0.02)
    assert drawn["mlp.router.weight"].std() == pytest.approx(256**-0.5, rel=0.05)
    # Half of its fan-in is on the other rank.
    assert drawn["attention.dense.weight"].std() == pytest.approx(256**-0.5, rel=0.05)
    eight = drawn["gate_up_proj.weight"].float() * drawn["gate_up_proj.weight_scale_inv"][0, 0]
    assert eight.std() == pytest.approx(256**-0.5, rel=0.05)
    assert drawn["gate_up_proj.weight"].float().std() == pytest.approx(FP8_STD, rel=0.05)
    routing = Routing(experts=64, groups=8, top_groups=4, top_k=8, scale=2.5)
    inputs = torch.randn(4000, 256, generator=torch.Generator().manual_seed(0))
    _, ids = select_experts(inputs @ drawn["mlp.router.weight"].T, torch.zeros(64), routing)
    shares = ids.flatten().bincount(minlength=64) / ids.numel() * 64
    assert shares.min() > 0.5
    assert shares.max() < 2


class FourBits(nn.Module):
    """Stacked experts of four bits as this project stores them, and as SGLang does."""

    def __init__(self, experts: int, rows: int, columns: int) -> None:
        super().__init__()
        tiled = experts, rows // 64, columns // 128, 64
        for name, shape, dtype in (
            ("w2_packed", (*tiled, 32), torch.int16),
            ("w2_scale", tiled, torch.bfloat16),
            ("w2_qweight", (experts, rows, columns // 2), torch.uint8),
            ("w2_scales", (experts, rows, columns // 128), torch.bfloat16),
        ):
            blank = nn.Parameter(torch.empty(shape, dtype=dtype), requires_grad=False)
            self.register_parameter(name, blank)


@pytest.mark.parametrize("ranks", [1, 2])
def test_weights_of_four_bits_keep_variance_in_either_layout(ranks: int) -> None:
    model = FourBits(3, 256, 512)
    draw_parameters(model, ranks)
    drawn = dict(model.named_parameters())
    ours = dequantize_int4(Int4Matrix(drawn["w2_packed"], drawn["w2_scale"])[1])
    words = drawn["w2_qweight"][1]
    values = torch.stack((words & 15, words >> 4), dim=-1).flatten(1).float() - 8
    stocks = values * drawn["w2_scales"][1].float().repeat_interleave(128, dim=1)
    for weight in (ours, stocks):
        assert weight.std() == pytest.approx((512 * ranks) ** -0.5, rel=0.02)
        assert weight.mean().abs() < 0.02 * weight.std()


def test_sglang_reads_the_four_bits_of_the_experts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang.srt.layers.quantization import QUANTIZATION_METHODS, moe_wna16

    # The method asks for the GPU as it is made.
    monkeypatch.setattr(moe_wna16, "get_device_capability", lambda: (9, 0))
    config = build_config("stock", SHAPE, "int4")["quantization_config"]
    chosen = {
        method.override_quantization_method(config, STOCK_INT4_METHOD)
        for method in QUANTIZATION_METHODS.values()
    }
    assert chosen == {None, STOCK_INT4_METHOD}
    made = moe_wna16.MoeWNA16Config.from_config(config)
    assert not made.has_zp
    names = {
        "model.layers.0.mlp.gate_up_proj": True,
        "model.layers.10.mlp.experts": False,
        "model.layers.10.mlp.shared_experts.down_proj": True,
        "model.layers.10.attention.query_key_value": True,
    }
    for name, is_skipped in names.items():
        assert moe_wna16.is_layer_skipped_quant(name, made.modules_to_not_convert) == is_skipped
    layer = nn.Module()
    moe_wna16.MoeWNA16Method(made).create_weights(
        layer, 4, 512, 256, torch.bfloat16, weight_loader=None
    )
    draw_parameters(layer, ranks=1)
    parameters = dict(layer.named_parameters())
    assert set(parameters) == {"w13_qweight", "w2_qweight", "w13_scales", "w2_scales"}
    spread = parameters["w13_scales"].float().abs() * INT4_STD
    assert spread.mean() == pytest.approx(512**-0.5, rel=0.01)


class Decode:
    """A batch of a decode step, as far as the census reads it."""

    forward_mode = type("Mode", (), {"is_decode": staticmethod(lambda: True)})

    def __init__(self, rows: int) -> None:
        self.batch_size = rows


class Layer(nn.Module):
    """Returns the given ids as SGLang's top-k output."""

    def __init__(self, ids: list[list[int]]) -> None:
        super().__init__()
        self.ids = torch.tensor(ids)

    def forward(self, _: object) -> object:
        return type("TopK", (), {"topk_ids": self.ids})


class Layers(nn.Module):
    """A decoder that only runs its layers."""

    def __init__(self, layers: list[Layer]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, forward_batch: Decode) -> None:
        for layer in self.layers:
            layer(None)


def test_experts_are_counted_in_one_batch_of_the_named_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ROWS, "3")
    monkeypatch.setenv(FILE, str(tmp_path / "census.json"))
    # The last id of each row is the shared expert, which no count includes.
    decoder = Layers([Layer([[0, 1, 8], [1, 2, 8], [7, 0, 8]]), Layer([[5, 5, 8]] * 3)])
    ExpertCensus(decoder, Layer, rank=0)
    decoder(forward_batch=Decode(2))
    assert not (tmp_path / "census.json").exists()
    decoder(forward_batch=Decode(3))
    layers = json.loads((tmp_path / "census.json").read_text(encoding="utf-8"))
    assert count_experts_used(layers, 1, experts=8) == [2, 1]
    assert count_experts_used(layers, 3, experts=8) == [4, 1]


def test_a_script_is_said_whatever_the_logits() -> None:
    ids = script_ids(build_thinker_tokenizer())
    scripted = ScriptedAnswer(ids, vocabulary=2048, device=torch.device("cpu"))
    logits = torch.randn(2, 2048)
    scripted(logits, None)
    said = [int(logits[0].argmax())]
    while len(said) < len(ids):
        logits = torch.randn(2, 2048) * 50
        scripted(logits, torch.tensor([said[-1], 3]))
        assert int(logits[1].argmax()) == ids[0]
        said.append(int(logits[0].argmax()))
    assert said == ids
    assert len(ids) == 26
    text = build_thinker_tokenizer().decode(ids[:FIRST_SENTENCE])
    assert text.endswith(".")
    assert text.count(".") == 1


def test_rates_count_only_the_time_when_everybody_decodes() -> None:
    slow = Arrivals(((1.0, 1), (2.0, 2), (3.0, 3), (4.0, 4)))
    fast = Arrivals(((0.5, 1), (1.5, 3), (2.5, 5)))
    row = summarise_round(Round(2, 8, 5), [slow, fast])
    # From 1.0 to 2.5: one token of the slow answer, four of the fast one.
    assert row["tokens_per_s"] == pytest.approx(5 / 1.5, abs=0.01)
    assert row["tokens_per_s_prefill_included"] == pytest.approx(9 / 4, abs=0.01)
    assert row["tpot_ms"] == pytest.approx((1000 + 500) / 2)
    assert row["ttft_ms"] == {"p50": 500.0, "p95": 1000.0}


def test_systems_are_compared_by_their_best_rounds() -> None:
    rows = [
        {"system": system, "clients": clients, "tokens_per_s": rate}
        for system, clients, rate in (
            ("plug-in", 1, 100.0),
            ("plug-in", 1, 120.0),
            ("stock", 1, 100.0),
            ("stock", 8, 300.0),
        )
    ]
    assert compare_systems(rows) == {"1": 120.0}
    assert compare_systems(rows, STOCK_ALONE) == {}


def test_rows_before_a_failure_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"system": "plug-in", "clients": 1, "tokens_per_s": 1.0, "tpot_ms": 1.0}
    measured |= {"ttft_ms": {"p50": 1.0, "p95": 1.0}, "experts_touched": [8]}
    measured |= {"weights_gb": 4.5, "share_of_weight_traffic": 0.6}

    def measure(_: Job) -> Iterator[dict[str, Any]]:
        yield measured
        raise TimeoutError("no trace")

    monkeypatch.setattr(decoding, "measure", measure)
    rows, reason = decoding.run_job(Job("plug-in", SHAPE, "int4", "off", 1, "cpu", (1,), 8, 8, 1))
    assert rows == [measured]
    assert reason == "TimeoutError: no trace"


def test_sglang_runs_without_deep_gemm_only_where_that_makes_a_difference() -> None:
    assert list_systems("fp8", deep_gemm=True) == ["plug-in", "stock", STOCK_ALONE]
    assert list_systems("fp8", deep_gemm=False) == ["plug-in", "stock"]
    assert list_systems("int4", deep_gemm=True) == ["plug-in", "stock"]


@pytest.mark.parametrize("head", HeadForm)
@pytest.mark.parametrize("weights", ["bf16", "fp8", "int4"])
def test_the_weights_of_a_step_are_those_of_the_checkpoint(weights: str, head: HeadForm) -> None:
    shapes = {
        name: tuple(shape)
        for name, shape in list_thinker_tensors(MingTextConfig(**(SHAPE | CONSTANTS))).items()
    }
    in_fp8: set[str] = set()
    fp8_head = head is HeadForm.FP8
    if weights != "bf16":
        in_fp8 = {name for name in shapes if is_quantized(name, fp8_head)}
    if weights == "fp8":
        shapes = add_scales(shapes, fp8_head)
    elif weights == "int4":
        in_fp8 = {name for name in in_fp8 if not is_expert_matrix(name)}
        shapes = list_int4_tensors(shapes, symmetric=True, fp8_head=fp8_head)
    stored = {
        name: torch.Size(shape).numel()
        * (4 if name.endswith("_scale_inv") else 1 if name in in_fp8 else 2)
        for name, shape in shapes.items()
    }
    # All experts, one router of three, the head, and no embeddings.
    read = sum(
        size
        for name, size in stored.items()
        if "norm" not in name
        and "word_embeddings" not in name
        and not name.endswith("bias")
        and "image_gate" not in name
        and "audio_gate" not in name
    )
    found = step_bytes("plug-in", SHAPE, weights, [256] * 31, head)
    assert found == pytest.approx(read, rel=1e-6)


def test_a_step_of_one_client_in_four_bits_reads_four_gigabytes() -> None:
    num_bytes = step_bytes("plug-in", SHAPE, "int4", [8] * 31)
    assert num_bytes == pytest.approx(3.84e9, rel=0.01)
    milliseconds = shortest_step_ms("NVIDIA H100 80GB HBM3", num_bytes)
    assert milliseconds == pytest.approx(1.15, rel=0.01)
    assert shortest_step_ms("an unknown GPU", num_bytes) is None
    job = Job("plug-in", SHAPE, "int4", "off", 1, "cpu", (1,), 8, 8, 1)
    assert describe_traffic(job, 3.0, [8] * 31) == {
        "weights_gb": 3.84,
        "share_of_weight_traffic": None,
    }
    # SGLang's kernels leave all but routed experts in bfloat16.
    assert step_bytes("stock", SHAPE, "int4", [8] * 31) > 1.3 * num_bytes
    plain_head = step_bytes("plug-in", SHAPE, "int4", [8] * 31, HeadForm.BF16)
    assert plain_head - num_bytes == pytest.approx(644e6, rel=0.001)


@pytest.mark.parametrize("weights", ["fp8", "int4"])
def test_the_stock_head_is_in_bfloat16(weights: str) -> None:
    used = [8] * 31
    assert has_fp8_head(build_config("plug-in", SHAPE, weights)["quantization_config"])
    ours = build_config("plug-in", SHAPE, weights, HeadForm.BF16)["quantization_config"]
    assert not has_fp8_head(ours)
    for head in HeadForm:
        stock = build_config("stock", SHAPE, weights, head)["quantization_config"]
        assert not has_fp8_head(stock)
        assert step_bytes("stock", SHAPE, weights, used, head) == step_bytes(
            "stock", SHAPE, weights, used
        )


def test_the_shape_is_the_released_one_in_either_precision(tmp_path: Path) -> None:
    text = MingTextConfig(**(SHAPE | CONSTANTS))
    tensors = list_thinker_tensors(text)
    elements = {name: torch.Size(shape).numel() for name, shape in tensors.items()}
    assert 102e9 < sum(elements.values()) < 104e9
    eight = sum(count for name, count in elements.items() if is_quantized(name))
    assert 0.98 < eight / sum(elements.values()) < 0.995
    assert is_block_fp8(build_config("plug-in", SMALL, "fp8")["quantization_config"])
    assert is_int4(build_config("plug-in", SMALL, "int4")["quantization_config"])
    assert "quantization_config" not in build_config("stock", SMALL, "bf16")
    write_shape_checkpoint(tmp_path, "stock", SMALL, "fp8")
    assert (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize("fp8", [False, True])
def test_tuning_has_candidates_for_every_number_of_tokens(fp8: bool) -> None:
    configs = candidates(fp8)
    for tokens in TOKENS:
        assert sum(suits_tokens(config, tokens) for config in configs) >= 20
    if fp8:
        assert all(128 % config["BLOCK_SIZE_K"] == 0 for config in configs)


def test_tuned_kernels_are_named_only_for_exactly_these_experts(tmp_path: Path) -> None:
    config = build_config("plug-in", SHAPE, "fp8")
    folder = find_version_folder(tmp_path)
    folder.mkdir(parents=True)
    name = format_file_name("NVIDIA H200", 257, 512, fp8=True)
    assert name == "E=257,N=512,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128, 128].json"
    (folder / name).write_text("{}")
    assert build_moe_environment(config, "NVIDIA H200", 2, tmp_path) == {
        "SGLANG_MOE_CONFIG_DIR": str(tmp_path)
    }
    assert build_moe_environment(config, "NVIDIA H200", 1, tmp_path) == {}
    # Ranks that share experts have fewer, and the shared one apart.
    assert build_moe_environment(config, "NVIDIA H200", 2, tmp_path, ep_size=2) == {}
    split = format_file_name("NVIDIA H200", 128, 1024, fp8=True)
    (folder / split).write_text("{}")
    assert build_moe_environment(config, "NVIDIA H200", 2, tmp_path, ep_size=2)
    assert build_moe_environment(config, "NVIDIA H200", 4, tmp_path, ep_size=2) == {}
    assert build_moe_environment(config, "NVIDIA H100", 2, tmp_path) == {}
    four = build_config("plug-in", SHAPE, "int4")
    assert build_moe_environment(four, "NVIDIA H200", 2, tmp_path) == {}
    plain = build_config("plug-in", SHAPE, "bf16")
    assert build_moe_environment(plain, "NVIDIA H200", 2, tmp_path) == {}
