"""Speech is measured beside images, against the real HTTP application."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.client import load
from benchmarks.serving.speech_beside_images import Row, compute_ratio, main
from sglang_omni.protocol.errors import Overloaded
from tests.entrypoints.http.fake import DrawingBackend, Served, playing
from tests.entrypoints.http.fake import serving as served


@pytest.fixture
def server() -> Iterator[Served]:
    with served(backend=DrawingBackend()) as running:
        yield running


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Client processes begin as they come, not together."""
    monkeypatch.setattr(load, "START_S", 0.0)


def options(server: Served, out: Path) -> list[str]:
    small = ["--clients", "2", "--requests", "4", "--processes", "1", "--size", "512x512"]
    return ["--url", server.url, *small, "--steps", "4", "--out", str(out)]


def test_the_file_has_speech_alone_and_beside_images(server: Served, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert main(options(server, out)) == 0
    result = json.loads(out.read_text(encoding="utf-8"))
    assert [row["beside"] for row in result["rows"]] == ["nothing", "images", "nothing"]
    assert all(len(row["records"]) == 4 for row in result["rows"])
    assert result["images_drawn"] >= 1
    assert result["ttfa_p95_ratio"] > 0


def test_failed_speech_fails_the_command(server: Served, tmp_path: Path) -> None:
    server.backend.script = playing(then=Overloaded("full"))
    out = tmp_path / "out.json"
    assert main(options(server, out)) == 1
    result = json.loads(out.read_text(encoding="utf-8"))
    assert [row["failed"] for row in result["rows"]] == [4, 4, 4]
    assert result["ttfa_p95_ratio"] is None


def test_the_ratio_is_to_the_slower_load_alone() -> None:
    waits = (("nothing", 100.0), ("images", 300.0), ("nothing", 150.0))
    rows: list[Row] = [{"beside": about, "ttfa_ms": {"p95": p95}} for about, p95 in waits]
    assert compute_ratio(rows) == 2.0
    rows[1]["ttfa_ms"]["p95"] = None
    assert compute_ratio(rows) is None
