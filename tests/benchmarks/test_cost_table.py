"""The document's tables of what a GPU-hour gives are those of today's result files."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cost_table
from benchmarks.cost_table import (
    DOCUMENT,
    OURS,
    RESULTS,
    Rate,
    format_tables,
    list_speech_rates,
    list_text_rates,
    main,
    replace_tables,
)

DEVICE = {"device": "NVIDIA H100 80GB HBM3", "devices": "1"}


def test_the_tables_in_the_document_are_those_of_the_result_files() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert replace_tables(text, format_tables()) == text


def test_an_hour_is_shared_by_the_gpus() -> None:
    assert Rate("a system", "", "4 x H100", 4, 1, 110.0).per_gpu_hour == 110 * 3600 / 4


def write(folder: Path, name: str, result: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps(result), encoding="utf-8")


def test_results_in_four_bits_have_rows_once_they_are_there(tmp_path: Path) -> None:
    assert {rate.system for rate in list_text_rates(tmp_path)} == {
        "vllm-omni 0.19, published",
        "mstar, published",
    }
    rows = [
        {"system": system, "clients": 64, "tokens_per_s": rate}
        for system, rate in (("plug-in", 2700.0), ("plug-in", 2800.0), ("stock", 607.0))
    ]
    jobs = [{"system": system, "weights": "int4", "tp": 1} for system in ("plug-in", "stock")]
    result = {"environment": DEVICE, "jobs": jobs, "rows": rows}
    write(tmp_path, "thinker_h100_int4.json", result)
    served = {
        "environment": DEVICE,
        "arguments": {"system": "1 x H100, thinker in four bits, all on one card"},
        "rows": [
            {"chat": "speech", "amount": 16, "audio_s_per_s": 150.0},
            {"chat": "text", "amount": 16, "audio_s_per_s": 0.0},
        ],
    }
    write(tmp_path, "sharing_h100_own.json", served)
    ours = [rate for rate in list_text_rates(tmp_path) if rate.system == OURS]
    assert ours == [Rate(OURS, "", "1 x H100, four bits", 1, 64, 2800.0)]
    (spoken,) = (rate for rate in list_speech_rates(tmp_path) if rate.system == OURS)
    assert (spoken.gpus, spoken.clients, spoken.per_s) == ("1 x H100, four bits", 16, 150.0)
    assert "| 1 x H100, four bits |  |  |  | 10,080 |" in format_tables(tmp_path)
    assert "| 1 x H100, four bits | 16 | 540,000 |" in format_tables(tmp_path)


def test_a_served_system_without_a_precision_is_an_error() -> None:
    with pytest.raises(ValueError, match="no precision"):
        cost_table.read_precision({"arguments": {"system": "a laptop"}})


def test_every_file_that_is_there_is_read() -> None:
    names = {*cost_table.THINKER_FILES, *cost_table.SERVING_FILES, *cost_table.SPEECH_FILES}
    assert "thinker_h200_fp8_deepgemm.json" in {name for name in names if (RESULTS / name).exists()}
    assert len(list_text_rates()) > 10


def test_it_writes_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = tmp_path / "document.md"
    document.write_text(f"before\n{cost_table.START}\nold\n{cost_table.END}\nafter\n")
    monkeypatch.setattr(cost_table, "DOCUMENT", document)
    main(["--write"])
    text = document.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert format_tables() in text
    assert "old" not in text
    with pytest.raises(ValueError, match="no <!--"):
        replace_tables("no marks", "tables")
