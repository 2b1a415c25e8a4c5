"""Voices that requests bring: made beside the steps, equal to presets, kept within bounds."""

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch

from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.runtime.worker import StepInput
from sglang_omni.engines.speech.contract import (
    ClonedVoice,
    EncodedVoice,
    TalkerChunk,
    TalkerRequest,
    VoiceRequest,
)
from sglang_omni.engines.speech.voice_cache import VoiceCache, VoiceEncoder
from sglang_omni.engines.speech.worker import TalkerWorker
from sglang_omni.models.ming.speech.fast.prefill import ROWS_PER_CLONE, VoiceTable
from sglang_omni.models.ming.speech.model import MingSpeechModel, build_speech_prompt
from sglang_omni.models.ming.speech.modules import SpeechModules
from sglang_omni.models.ming.speech.voices import VoicePrompt, read_presets, read_recording
from sglang_omni.models.speech_text import SpeechStyle
from tests.engines.speech.conftest import MakeWorker
from tests.testing.golden import TINY

PRESET = read_presets(TINY / "talker")[0]
TEXT = "The mill stands by the river."


def recording() -> tuple[np.ndarray, int]:
    samples, rate = read_recording(PRESET.wav)
    return samples.numpy(), rate


def voice_request(key: str = "DB30") -> VoiceRequest:
    samples, rate = recording()
    array = SharedArray()
    return VoiceRequest(key, array, array.write(samples), rate, SharedArray())


def cloned(asked: VoiceRequest, made: EncodedVoice, text: str | None = PRESET.text) -> ClonedVoice:
    return ClonedVoice(asked.key, text, asked.voice, made.layout, made.latents)


def drain(worker: TalkerWorker, **requests: TalkerRequest | VoiceRequest) -> dict[str, list[Any]]:
    """Step until everything has ended; results by request, and the longest step in seconds."""
    results: dict[str, list[Any]] = {}
    longest, work = 0.0, StepInput(arrivals=tuple(requests.items()))
    while work.arrivals or worker.busy:
        began = time.monotonic()
        for name, result in worker.step(work):
            assert not isinstance(result, Exception), result
            results.setdefault(name, []).append(result)
        longest = max(longest, time.monotonic() - began)
        work = StepInput()
    return results


def pcm(chunks: Iterable[TalkerChunk]) -> np.ndarray:
    return np.concatenate([chunk.pcm for chunk in chunks])


def make(worker: TalkerWorker, asked: VoiceRequest) -> ClonedVoice:
    (made,) = drain(worker, voice=asked)["voice"]
    assert isinstance(made, EncodedVoice)
    return cloned(asked, made)


def test_a_voice_made_of_a_presets_recording_speaks_as_the_preset(make_worker: MakeWorker) -> None:
    worker = make_worker()
    voice = make(worker, voice_request())
    heard = drain(
        worker,
        preset=TalkerRequest(TEXT, "DB30", 3, max_patches=4),
        clone=TalkerRequest(TEXT, voice, 3, max_patches=4),
    )
    assert np.abs(pcm(heard["preset"]) - pcm(heard["clone"])).max() < 1e-4
    assert worker.counters()["voices_made"] == 1


def test_a_voice_without_known_words_only_primes_the_history(model: SpeechModules) -> None:
    (voice,) = [v for v in model.voices.values() if v.name == "DB30"]
    known = build_speech_prompt(TEXT, voice, SpeechStyle())
    told = build_speech_prompt(TEXT, voice, SpeechStyle(instruction="{}"))
    assert known.has_prompt_audio
    assert not told.has_prompt_audio
    assert told.speakers == known.speakers == 1
    assert told.instruction == "{}"


def test_a_talker_that_has_learnt_it_keeps_a_recordings_words_under_an_instruction(
    model: SpeechModules,
) -> None:
    voice, style = model.voices["DB30"], SpeechStyle(instruction="{}")
    asked = [
        MingSpeechModel(model, keeps_prompt=keeps).prepare(TEXT, voice, style).prompt
        for keeps in (False, True)
    ]
    assert [one.audio_patches for one in asked] == [0, len(voice.embeds)]
    words = model.tokenizer.encode(voice.text or "")
    assert len(asked[1].ids) == len(asked[0].ids) + len(words) + len(voice.embeds)


def test_speech_goes_on_while_a_voice_is_made(
    make_worker: MakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording that takes seconds to encode delays no step."""
    worker, slow = make_worker(), 3.0
    real = VoiceEncoder._encode

    def slowly(self: VoiceEncoder, request: VoiceRequest) -> EncodedVoice:
        time.sleep(slow)
        return real(self, request)

    monkeypatch.setattr(VoiceEncoder, "_encode", slowly)
    asked = voice_request()
    worker.step(StepInput(arrivals=(("voice", asked),)))
    began = time.monotonic()
    heard: list[Any] = []
    work = StepInput(arrivals=(("said", TalkerRequest(TEXT, "DB30", 1, max_patches=3)),))
    while not (heard and heard[-1].last):
        heard += [chunk for name, chunk in worker.step(work) if name == "said"]
        work = StepInput()
    assert time.monotonic() - began < slow
    assert worker.busy
    assert "voice" in drain(worker)


def test_a_cancelled_recording_is_forgotten(make_worker: MakeWorker) -> None:
    worker = make_worker()
    worker.step(StepInput(arrivals=(("voice", voice_request()),)))
    worker.step(StepInput(cancellations=("voice",)))
    assert not worker.busy


def test_a_recording_whose_owner_is_gone_fails_alone(make_worker: MakeWorker) -> None:
    worker, asked = make_worker(), voice_request()
    path = asked.recording.path
    asked.recording.path = path.rsplit("/", 1)[0] + "/999999"
    results = []
    results += worker.step(StepInput(arrivals=(("voice", asked),)))
    while worker.busy:
        results += worker.step(StepInput())
    ((name, error),) = results
    assert name == "voice"
    assert isinstance(error, OSError)


def test_the_cache_keeps_the_voices_used_last(model: SpeechModules) -> None:
    cache = VoiceCache(MingSpeechModel(model), max_clones=2)
    asked = voice_request()
    encoder = VoiceEncoder(MingSpeechModel(model))
    encoder.start("a", asked)
    while not (done := encoder.collect(1.0)):
        pass
    made = done[0][1]
    assert isinstance(made, EncodedVoice)
    voices = [ClonedVoice(key, None, asked.voice, made.layout, made.latents) for key in "abc"]
    first = cache.find(voices[0])
    assert cache.find(voices[0]) is first
    cache.find(voices[1])
    assert cache.find(voices[0]) is first
    cache.find(voices[2])
    assert cache.find(voices[0]) is first, "the one used longest ago is let go, not the oldest"
    assert len(cache._clones) == 2
    assert torch.equal(first.latents, model.voices["DB30"].latents)
    assert first.text is None


def test_texts_are_written_in_the_marks_that_the_talker_knows(model: SpeechModules) -> None:
    plain, picky = MingSpeechModel(model), MingSpeechModel(model, ".,?!-'")
    voice, style = model.voices["DB30"], SpeechStyle()
    asked = picky.prepare('"Rain" - again', voice, style).prompt
    assert asked == plain.prepare("Rain, again.", voice, style).prompt
    assert asked != plain.prepare('"Rain" - again', voice, style).prompt
    values = torch.zeros(4 * model.talker.config.latent_dim)
    assert picky.read_voice("me", "Good morning", values, 4).text == "Good morning."
    assert picky.read_voice("me", None, values, 4).text is None


def test_a_description_keeps_its_form(model: SpeechModules) -> None:
    described = SpeechStyle("Describe.\n")
    texts = [
        one.prepare(" Genre: pop.", model.voices["DB30"], described).prompt
        for one in (MingSpeechModel(model), MingSpeechModel(model, "."))
    ]
    assert texts[0] == texts[1]


def test_nobodys_voice_has_no_rows_and_an_empty_history(
    model: SpeechModules, make_worker: MakeWorker
) -> None:
    nobody = VoiceCache(MingSpeechModel(model)).find(None)
    asked = build_speech_prompt("rain", nobody, SpeechStyle())
    assert not asked.has_prompt_audio
    assert asked.speakers == 0
    heard = drain(make_worker(), rain=TalkerRequest("rain", None, 1, max_patches=2))
    assert np.isfinite(pcm(heard["rain"])).all()


@pytest.mark.parametrize("style", [SpeechStyle(cfg=4.5), SpeechStyle(sigma=0.3, temperature=2.5)])
def test_guidance_and_noise_belong_to_the_request_alone(
    make_worker: MakeWorker, style: SpeechStyle
) -> None:
    plain = TalkerRequest(TEXT, "DB30", 3, max_patches=3)
    other = TalkerRequest(TEXT, "DB30", 3, max_patches=3, style=style)
    together = drain(make_worker(), plain=plain, other=other)
    alone = drain(make_worker(), plain=plain), drain(make_worker(), other=other)
    assert np.abs(pcm(together["plain"]) - pcm(alone[0]["plain"])).max() < 1e-4
    assert np.abs(pcm(together["other"]) - pcm(alone[1]["other"])).max() < 1e-4
    assert np.abs(pcm(together["plain"]) - pcm(together["other"])).max() > 1e-3


def test_a_cloned_voice_takes_the_rows_of_the_one_used_longest_ago(model: SpeechModules) -> None:
    pytest.importorskip("triton")
    table = VoiceTable(model.talker, model.voices, clones=2)
    presets = [table.locate(voice) for voice in model.voices.values()]
    (voice,) = [v for v in model.voices.values() if v.name == "DB30"]

    def named(name: str) -> VoicePrompt:
        return type(voice)(name, None, voice.latents, voice.embeds, voice.speaker)

    a, b = table.locate(named("a")), table.locate(named("b"))
    assert table.locate(named("a")) == a
    assert table.locate(named("c")) == b
    assert len({a.first, b.first, *(place.first for place in presets)}) == 4
    assert abs(a.first - b.first) == ROWS_PER_CLONE
    assert voice.speaker is not None
    rows = table.rows[a.first : a.first + 1 + len(voice.embeds)]
    assert torch.equal(rows, torch.cat((voice.speaker[None], voice.embeds)))
    assert [table.locate(voice) for voice in model.voices.values()] == presets
