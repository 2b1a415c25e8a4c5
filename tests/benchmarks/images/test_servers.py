"""Images of two servers are asked for alike, and compared pair by pair."""

import base64
import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from benchmarks.images import servers
from benchmarks.images.quality import MAX_PSNR

ASKED: list[tuple[str, dict[str, Any]]] = []


def answer(request: httpx.Request) -> httpx.Response:
    """A grey image by its seed; the second server's are one level lighter."""
    body = json.loads(request.content)
    ASKED.append((request.url.host, body))
    level = 40 * (body["seed"] + 1) + (request.url.host == "second")
    file = io.BytesIO()
    Image.fromarray(np.full((32, 32, 3), level, np.uint8)).save(file, "PNG")
    encoded = base64.b64encode(file.getvalue()).decode()
    return httpx.Response(200, json={"data": [{"b64_json": encoded}]})


@pytest.fixture(autouse=True)
def both(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = httpx.MockTransport(answer)
    ASKED.clear()
    monkeypatch.setattr(httpx, "Client", partial(httpx.Client, transport=transport))


def test_every_seed_is_drawn_by_both_and_compared(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    options = ["--prompt", "a circle", "--prompt", "a star", "--seeds", "3", "--out", str(out)]
    servers.main(["--url", "http://first", "http://second", *options])
    asked = [(body["prompt"], body["seed"], body["size"]) for _, body in ASKED]
    wanted = [("a circle", 0, "256x256"), ("a star", 1, "256x256"), ("a circle", 2, "256x256")]
    assert asked == wanted * 2
    assert [host for host, _ in ASKED] == ["first"] * 3 + ["second"] * 3
    similarity = json.loads(out.read_text())["similarity"]
    assert similarity["seeds"] == 3
    # One level of 255 everywhere.
    assert similarity["psnr_db"] == {"mean": 48.1308, "min": 48.1308}


def test_equal_servers_are_as_near_as_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    servers.main(["--url", "http://one", "http://other", "--prompt", "a circle", "--seeds", "2"])
    assert json.loads(capsys.readouterr().out)["psnr_db"]["min"] == MAX_PSNR
