"""What captured prefills read, and which graphs are refused."""

from types import SimpleNamespace

import pytest
import torch

from sglang_omni.models.ming.thinker import prefill
from sglang_omni.models.ming.thinker.routing import IMAGE, TEXT
from sglang_omni.protocol.errors import StartupError

HIDDEN = 4


def _configure(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    phase = SimpleNamespace(backend=backend, bs=[16, 32])
    arguments = SimpleNamespace(cuda_graph_config=SimpleNamespace(prefill=phase))
    monkeypatch.setattr(prefill, "get_server_args", lambda: arguments)


def _inputs(monkeypatch: pytest.MonkeyPatch, backend: str) -> prefill.CapturedInputs | None:
    _configure(monkeypatch, backend)
    return prefill.allocate_captured_inputs(HIDDEN, torch.device("cpu"))


def test_without_graphs_there_is_nothing_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _inputs(monkeypatch, "disabled") is None


@pytest.mark.parametrize("backend", ["full", "tc_piecewise"])
def test_graphs_that_never_look_at_media_are_refused(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    with pytest.raises(StartupError, match=backend):
        _inputs(monkeypatch, backend)


def test_a_batch_of_text_does_not_inherit_the_routers_of_one_with_pictures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs = _inputs(monkeypatch, "breakable")
    assert inputs is not None
    address = inputs.select_first(8)[0].data_ptr()
    embeds = torch.randn(8, HIDDEN)
    routes = torch.tensor([TEXT, IMAGE] * 4, dtype=torch.uint8)
    inputs.fill(embeds, routes)
    read = inputs.select_first(8)
    assert torch.equal(read[0], embeds)
    assert torch.equal(read[1], routes)
    inputs.fill(-embeds, None)
    read = inputs.select_first(8)
    assert torch.equal(read[0], -embeds)
    assert read[1].tolist() == [TEXT] * 8
    assert read[0].data_ptr() == address
