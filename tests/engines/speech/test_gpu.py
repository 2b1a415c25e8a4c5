"""The talker's graphs on a CUDA device against the plain modules on the CPU."""

from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.talker.shapes import TALKER, random_speech_model
from benchmarks.talker.steps import build_admission, time_steps
from sglang_omni.engines.runtime.worker import StepInput
from sglang_omni.engines.speech.contract import TalkerChunk, TalkerRequest, TalkerSettings
from sglang_omni.engines.speech.worker import TalkerWorker
from sglang_omni.kernels.split_k import MAX_TILES
from sglang_omni.models.ming.speech.executor import PlainExecutor
from sglang_omni.models.ming.speech.fast.graph_executor import WORKSPACE_SIZE, GraphExecutor
from sglang_omni.models.ming.speech.model import MingSpeechModel
from sglang_omni.models.ming.speech.modules import load_modules
from tests.engines.speech.conftest import NEVER_STOP, MakeWorker
from tests.testing.golden import TINY, assert_close

pytestmark = pytest.mark.gpu

TEXTS = ["One, two, three.", "今天天气很好。", "The river runs slowly past the old stone mill."]
# Float32 sums in another order, through ten flow steps and a few patches of feedback.
TOLERANCE = 2e-3


def build(dtype: str = "float32", slots: int = 8, **changes: Any) -> TalkerWorker:
    settings = TalkerSettings(
        TINY,
        device="cuda",
        dtype=dtype,
        slots=slots,
        context=512,
        **{"min_patches": NEVER_STOP} | changes,
    )
    return TalkerWorker(
        MingSpeechModel(load_modules(settings.checkpoint, settings.device, settings.dtype)),
        settings,
    )


@pytest.fixture(scope="module")
def graphed() -> TalkerWorker:
    return build()


def requests(count: int, patches: int) -> dict[str, TalkerRequest]:
    return {
        str(number): TalkerRequest(
            TEXTS[number % 3],
            ("DB30", "plain_en")[number % 2],
            number,
            number % 4,
            patches + number,
        )
        for number in range(count)
    }


def drive(
    worker: TalkerWorker, wanted: dict[str, TalkerRequest], every: int = 1
) -> dict[str, np.ndarray]:
    """Requests join one by one, `every` steps apart; the samples of each."""
    heard: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
    waiting = list(wanted.items())
    turn = 0
    while waiting or worker.busy:
        arrivals = (waiting.pop(0),) if waiting and turn % every == 0 else ()
        for name, chunk in worker.step(StepInput(arrivals=arrivals)):
            assert isinstance(chunk, TalkerChunk), chunk
            heard[name].append(chunk.pcm)
        turn += 1
    return {name: np.concatenate(pieces) for name, pieces in heard.items()}


def test_requests_that_come_and_go_sound_as_on_the_cpu(
    graphed: TalkerWorker, make_worker: MakeWorker
) -> None:
    wanted = requests(12, patches=3)
    ours, plain = drive(graphed, wanted), drive(make_worker(), wanted)
    for name in wanted:
        assert_close(torch.from_numpy(ours[name]), torch.from_numpy(plain[name]), TOLERANCE, name)


def test_a_stream_sounds_the_same_alone_and_among_others(graphed: TalkerWorker) -> None:
    wanted = requests(8, patches=5)
    together = drive(graphed, wanted)
    for name in ("0", "3", "7"):
        alone = drive(graphed, {name: wanted[name]})[name]
        assert_close(torch.from_numpy(together[name]), torch.from_numpy(alone), TOLERANCE, name)


def test_a_cancelled_slot_serves_the_next_request_unharmed(graphed: TalkerWorker) -> None:
    wanted = requests(3, patches=4)
    graphed.step(StepInput(arrivals=tuple((f"gone{n}", wanted["1"]) for n in range(8))))
    graphed.step(StepInput())
    gone = tuple(f"gone{n}" for n in range(8))
    results = graphed.step(StepInput(cancellations=gone, arrivals=tuple(wanted.items())))
    assert not [name for name, _ in results if name in gone]
    while graphed.busy:
        graphed.step(StepInput())
    assert graphed.counters()["active_slots"] == 0
    assert drive(graphed, {"2": wanted["2"]})["2"].any()


def test_the_stop_rule_ends_requests_on_the_same_patch(make_worker: MakeWorker) -> None:
    wanted = {str(n): TalkerRequest(TEXTS[n % 3], "DB30", n, 0, 60) for n in range(6)}
    ours, plain = drive(build(min_patches=3), wanted), drive(make_worker(min_patches=3), wanted)
    assert [len(ours[name]) for name in wanted] == [len(plain[name]) for name in wanted]


def test_more_requests_than_a_step_is_wide_take_turns(graphed: TalkerWorker) -> None:
    worker = build(slots=8)
    worker._executor.max_batch_size = 3
    wanted = requests(8, patches=3)
    ours, others = drive(worker, wanted), drive(graphed, wanted)
    for name in wanted:
        assert_close(torch.from_numpy(ours[name]), torch.from_numpy(others[name]), TOLERANCE, name)


def test_bfloat16_graphs_stay_as_close_as_plain_bfloat16_modules() -> None:
    """Both are compared with float32 on one patch, before feedback takes the streams apart."""
    wanted = {"0": TalkerRequest(TEXTS[2], "DB30", 5, 0, 1)}
    exact = torch.from_numpy(drive(build(), wanted)["0"])
    ours = torch.from_numpy(drive(build("bfloat16"), wanted)["0"])
    plain = build("bfloat16", graphs=False)
    assert isinstance(plain._executor, PlainExecutor)
    theirs = torch.from_numpy(drive(plain, wanted)["0"])
    scale = exact.abs().max()
    assert (ours - exact).abs().max() / scale < 1.5 * (theirs - exact).abs().max() / scale + 0.01


def test_graphs_write_into_no_memory_of_others() -> None:
    # At the released shapes: there sums are split, which takes scratch memory.
    model = random_speech_model(TALKER, torch.device("cuda"), torch.bfloat16)
    executor = GraphExecutor(model, 1, 256, 64)
    others = [torch.zeros(WORKSPACE_SIZE, device="cuda") for _ in range(4)]
    others += [torch.zeros(MAX_TILES, device="cuda", dtype=torch.int32) for _ in range(64)]
    executor.prefill([build_admission(0, model.voices["voice"])])
    time_steps(executor, range(1), 2)
    torch.cuda.synchronize()
    assert not any(other.any() for other in others)
