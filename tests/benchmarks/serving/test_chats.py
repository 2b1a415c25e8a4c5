"""The chat benchmark measures what it says, against the real HTTP application."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.client import load
from benchmarks.client.chat import ChatQuery, Kind, unique_picture
from benchmarks.client.load import Load, run_load
from benchmarks.evaluation.report import __main__, figures
from benchmarks.serving import chats
from benchmarks.serving.chat_summary import summarise_chats
from sglang_omni.protocol.errors import Overloaded
from tests.entrypoints.http.fake import Served, playing
from tests.entrypoints.http.fake import serving as served


@pytest.fixture
def server() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Client processes begin as they come, not together."""
    monkeypatch.setattr(load, "START_S", 0.0)


def query(server: Served, kind: Kind, **fields: Any) -> ChatQuery:
    return ChatQuery(server.url, "org/ming", kind, side=64, texts=("one two three",), **fields)


@pytest.mark.parametrize("kind", ["text", "image", "speech"])
def test_an_answer_is_read_to_its_end(server: Served, kind: Kind) -> None:
    load = Load("closed", query(server, kind), 2, 60.0, requests=3)
    seen = run_load(load, processes=1)
    assert [record.error for record in seen.records] == [None] * 3
    for record in seen.records:
        assert record.ttft_s is not None
        assert 0 < record.ttft_s <= record.took_s
        assert record.tokens > 0
        assert (record.audio_s > 0) == (kind == "speech") == (record.ttfa_s is not None)
    row = summarise_chats(seen)
    assert row["requests"] == 3
    assert row["failed"] == 0
    assert row["tokens_per_s"] == pytest.approx(
        sum(record.tokens for record in seen.records) / row["seconds"]
    )


def test_a_refusal_is_a_failure_with_its_status(server: Served) -> None:
    server.backend.script = playing(then=Overloaded("full"))
    seen = run_load(Load("closed", query(server, "text"), 1, 60.0, requests=2), processes=1)
    row = summarise_chats(seen)
    assert row["failed"] == 2
    assert list(row["failures"]) == ["429"]
    assert row["ttft_ms"]["p50"] is None


def test_no_two_pictures_are_alike() -> None:
    assert len({unique_picture(number, 64) for number in range(300)}) == 300
    assert unique_picture(1, 64) == unique_picture(1, 64)


def test_the_command_writes_a_file_that_the_table_reads(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    out = tmp_path / "out.json"
    options = ["--url", server.url, "--kinds", "speech", "--clients", "1", "--requests", "2"]
    command = ["serving", *options, "--warm-up", "1", "--system", "a laptop", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    assert chats.main() == 0
    result = json.loads(out.read_text(encoding="utf-8"))
    assert [row["chat"] for row in result["rows"]] == ["speech"]
    assert all(len(row["records"]) == 2 for row in result["rows"])
    assert all(len(one) == len(result["record_columns"]) for one in result["rows"][0]["records"])
    capsys.readouterr()
    assert __main__.main([str(out)]) == 0
    shown = capsys.readouterr().out
    assert "| vllm-omni 0.19 | 4 x H100, bf16 |" in shown
    assert "| this project | a laptop | out.json |" in shown


def test_thinker_results_show_their_best_round_and_precision() -> None:
    rows = [
        {"system": system, "clients": 1, "tokens_per_s": rate}
        for system, rate in (("plug-in", 200.0), ("plug-in", 210.0), ("stock", 150.0))
    ]
    jobs = [{"system": system, "fp8": True, "tp": 1} for system in ("plug-in", "stock")]
    result = {"environment": {"device": "NVIDIA H200"}, "jobs": jobs, "rows": rows}
    found = {figure.system: figure for figure in figures.figures_of(result, "a file")}
    assert found["this project"].value == 210.0
    assert found["this project"].hardware == "1 x NVIDIA H200, FP8"
    assert found["stock SGLang, text only"].value == 150.0
