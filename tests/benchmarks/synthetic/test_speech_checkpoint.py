"""The benchmark's speaking checkpoint is one that the talker engine loads and speaks with."""

from pathlib import Path

import torch
from safetensors.torch import load_file

from benchmarks.synthetic.speech_checkpoint import (
    never_end_answers,
    stop_logit,
    write_speech_checkpoint,
)
from benchmarks.talker.shapes import SMALL_TALKER, SMALL_VAE
from sglang_omni.engines.runtime.worker import StepInput
from sglang_omni.engines.speech.contract import TalkerChunk, TalkerRequest, TalkerSettings
from sglang_omni.engines.speech.worker import TalkerWorker
from sglang_omni.models.checkpoint_files import INDEX_FILE
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.speech.model import MingSpeechModel
from sglang_omni.models.ming.speech.modules import load_modules
from sglang_omni.models.ming.tiny.speech import STOP_STD
from sglang_omni.models.ming.tiny.thinker import HEAD, Channel
from sglang_omni.models.ming.tiny.write import write_tiny_checkpoint


def test_a_written_checkpoint_has_the_wanted_sizes_and_speaks(tmp_path: Path) -> None:
    folder, cpu = tmp_path / "checkpoint", torch.device("cpu")
    write_speech_checkpoint(folder, SMALL_TALKER, SMALL_VAE, patches=6, device=cpu)
    settings = TalkerSettings(folder, slots=1)
    model = load_modules(settings.checkpoint, settings.device, settings.dtype)
    assert model.talker.config == SMALL_TALKER
    assert model.vae.config == SMALL_VAE
    worker, work = (
        TalkerWorker(MingSpeechModel(model), settings),
        StepInput(
            arrivals=(("one", TalkerRequest("Good morning.", next(iter(model.voices)), 1, 0)),)
        ),
    )
    samples, last = 0, False
    while not last:
        ((_, chunk),) = worker.step(work)
        assert isinstance(chunk, TalkerChunk)
        samples, last, work = samples + len(chunk.pcm), chunk.last, StepInput()
    assert samples


def test_the_stop_head_fires_as_often_as_asked() -> None:
    logits = stop_logit(20) + STOP_STD * torch.randn(100_000, generator=torch.manual_seed(0))
    assert 0.045 < (logits > 0).float().mean() < 0.055


def test_a_talkative_thinker_is_never_led_to_the_end(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "tiny")
    shard = tmp_path / "tiny" / read_json(tmp_path / "tiny" / INDEX_FILE)["weight_map"][HEAD]
    before = load_file(shard)[HEAD].clone()
    never_end_answers(tmp_path / "tiny")
    after = load_file(shard)[HEAD]
    ((row, column),) = (before != after).nonzero().tolist()
    assert column == Channel.STOPPED
    assert before[row, column] > 0
    assert after[row, column] == 0
