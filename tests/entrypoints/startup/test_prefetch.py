"""Which files a server reads ahead of its engines."""

from pathlib import Path

import pytest

from sglang_omni.config.load import load_config
from sglang_omni.entrypoints.startup import prefetch
from sglang_omni.entrypoints.startup.prefetch import prefetch_weights
from sglang_omni.system import page_cache


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of files that were read, on a machine with memory for all."""
    names: list[str] = []
    monkeypatch.setattr(page_cache, "READERS", 1)
    monkeypatch.setattr(page_cache, "read_into_page_cache", lambda path: names.append(path.name))
    monkeypatch.setattr(prefetch, "read_available_bytes", lambda: 1 << 50)
    return names


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    for name in ("model-2.safetensors", "model-1.safetensors", "config.json"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "talker").mkdir()
    (tmp_path / "talker" / "model.safetensors").write_bytes(b"x")
    return tmp_path


def test_the_files_of_thinker_and_encoders_are_read_in_the_order_of_loading(
    checkpoint: Path, read: list[str]
) -> None:
    for thread in prefetch_weights(load_config(None, {"model_path": "/models/ming"}), checkpoint):
        thread.join()
    assert read == ["model-1.safetensors", "model-2.safetensors"]


def test_nothing_is_read_for_engines_that_may_be_on_other_machines(
    checkpoint: Path, read: list[str]
) -> None:
    clustered = load_config(
        None, {"model_path": "/models/ming", "cluster.ray_address": "10.0.0.1:6379"}
    )
    assert prefetch_weights(clustered, checkpoint) == []
    assert read == []
