"""`sgl-omni quantize --int4 --calibration FILE`: experts rounded by what chats give them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from sglang_omni.entrypoints.cli.calibration_file import read_chats
from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.cli.quantize import CalibrationOptions, quantize
from sglang_omni.models.base import WeightForm
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.int4 import calibration
from sglang_omni.models.ming.thinker.int4.layout import is_expert_matrix, is_int4_tensor
from sglang_omni.models.ming.thinker.stored_forms import read_stored_form
from sglang_omni.models.ming.thinker.tensors import is_encoder_tensor, list_thinker_tensors
from sglang_omni.models.weights import TensorFolder, save_tensors
from sglang_omni.protocol.errors import StartupError
from sglang_omni.protocol.tools import ToolCall
from tests.entrypoints.cli.quantised import write_wide_checkpoint

TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {}}},
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
LINES: list[Any] = [
    *(
        {
            "messages": [
                {"role": "user", "content": f"What is {number} + {number}?"},
                {"role": "assistant", "content": f"It is {2 * number}."},
            ]
        }
        for number in range(40)
    ),
    {
        "messages": [
            {"role": "user", "content": "Call it."},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
        ],
        "tools": [TOOL],
    },
]


def write_lines(path: Path, lines: list[Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calibrate") / "bf16"
    write_wide_checkpoint(folder)
    write_lines(folder.parent / "chats.jsonl", LINES)
    return folder


def run(source: Path, target: Path, *options: str) -> int:
    chats = str(source.parent / "chats.jsonl")
    return main(["quantize", str(source), str(target), "--int4", "--calibration", chats, *options])


@pytest.fixture(scope="module")
def calibrated(source: Path) -> Path:
    assert run(source, source.parent / "calibrated", "--device", "cpu") == 0
    return source.parent / "calibrated"


def test_it_has_the_tensors_of_four_bits_and_other_values(source: Path, calibrated: Path) -> None:
    plain = source.parent / "plain"
    quantize(source, plain, WeightForm.INT4)
    config = MingConfig.from_pretrained(calibrated)
    form = read_stored_form(config.quantization_config)
    expected = form.list_stored(list_thinker_tensors(config.llm_config))
    found, uncalibrated = TensorFolder(calibrated), TensorFolder(plain)
    assert expected == {
        name: tuple(tensor.shape) for name, tensor in found.items() if not is_encoder_tensor(name)
    }
    assert json.loads((calibrated / "config.json").read_text()) == json.loads(
        (plain / "config.json").read_text()
    )
    changed = {name for name in found if not torch.equal(found[name], uncalibrated[name])}
    assert changed
    assert all(map(is_int4_tensor, changed))
    # No expert is stored twice.
    assert not any(is_expert_matrix(name) for name in found)


def test_it_says_how_many_experts_saw_too_few_tokens(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(source, tmp_path / "all") == 0
    counts = [
        count
        for path in sorted((tmp_path / "all").glob("experts-of-layer-*"))
        for count in calibration.read_num_inputs(path).values()
    ]
    few = sum(count < calibration.MIN_INPUTS for count in counts)
    printed = capsys.readouterr().out
    assert f"calibrated {34 - few} of 34 experts" in printed
    assert f"tokens of {len(LINES)} of {len(LINES)} chats" in printed
    assert len(counts) == 34
    write_lines(tmp_path / "one.jsonl", LINES[:1])
    one = str(tmp_path / "one.jsonl")
    target = str(tmp_path / "one")
    assert main(["quantize", str(source), target, "--int4", "--calibration", one]) == 0
    assert "experts saw fewer than 32 tokens: not calibrated" in capsys.readouterr().out


def test_an_interrupted_run_goes_on_with_the_next_layer(
    source: Path, calibrated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[Path] = []

    def save_once(path: Path, *contents: Any) -> None:
        if saved:
            raise KeyboardInterrupt
        save_tensors(path, *contents)
        saved.append(path)

    target = tmp_path / "out"
    options = CalibrationOptions(source.parent / "chats.jsonl")
    monkeypatch.setattr(calibration, "save_tensors", save_once)
    with pytest.raises(KeyboardInterrupt):
        quantize(source, target, WeightForm.INT4, calibration=options)
    assert not (target / "config.json").exists()
    monkeypatch.setattr(calibration, "save_tensors", save_tensors)
    written = saved[0].stat().st_mtime_ns
    others = write_lines(tmp_path / "others.jsonl", LINES[:5])
    with pytest.raises(StartupError, match="other chats"):
        quantize(source, target, WeightForm.INT4, calibration=CalibrationOptions(others))
    quantize(source, target, WeightForm.INT4, calibration=options)
    assert saved[0].stat().st_mtime_ns == written
    expected, found = TensorFolder(calibrated), TensorFolder(target)
    assert set(expected) == set(found)
    assert all(torch.equal(expected[name], found[name]) for name in expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fp8", "--calibration", "x.jsonl"), "--calibration needs --int4"),
        (("--int4", "--device", "cpu"), "--device needs --calibration"),
        (("--int4", "--calibration", "missing.jsonl"), "cannot read missing.jsonl"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    options: tuple[str, ...],
    message: str,
    source: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["quantize", str(source), str(tmp_path / "out"), *options]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.gpu
def test_a_gpu_calibrates_as_the_cpu_does(source: Path, calibrated: Path, tmp_path: Path) -> None:
    assert run(source, tmp_path / "cuda", "--device", "cuda") == 0
    expected, found = TensorFolder(calibrated), TensorFolder(tmp_path / "cuda")
    assert set(expected) == set(found)
    same = [
        float((expected[name] == found[name]).float().mean())
        for name in expected
        if is_int4_tensor(name)
    ]
    # Sums in another order round some numbers otherwise, and change those after them.
    assert sum(same) / len(same) > 0.9


PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", ":2: not valid JSON"),
        ("[]", ":2: must be an object"),
        ('{"messages": []}', ":2: messages"),
        ('{"messages": [{"role": "user", "contents": "x"}]}', ":2: messages.0"),
        (json.dumps({"messages": [{"role": "user", "content": [PICTURE]}]}), ":2: .*text only"),
    ],
)
def test_a_line_that_is_no_chat_of_text_is_named(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(LINES[0]) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(StartupError, match=message):
        read_chats(path)


def test_a_file_without_chats_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="has no chat"):
        read_chats(write_lines(tmp_path / "chats.jsonl", []))


def test_chats_have_their_answers_and_functions(tmp_path: Path) -> None:
    chats = read_chats(write_lines(tmp_path / "chats.jsonl", LINES))
    assert len(chats) == len(LINES)
    assert [turn.role for turn in chats[0].messages] == ["user", "assistant"]
    assert [tool.name for tool in chats[-1].tools] == ["f"]
    assert chats[-1].messages[-1].content == (ToolCall("f", "{}"),)
