"""Each recogniser is called as its package wants it: on tiny models of the real classes.

The weights are random, so what they hear is no language; what they are given, and how, is that of
the large ones. Paraformer's package is no dependency: `ci/stage.sh recognisers` has it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soxr

from benchmarks.evaluation.metrics import recognisers
from benchmarks.evaluation.metrics.recognisers import (
    Clip,
    Paraformer,
    RecogniserUnavailable,
    Whisper,
)
from tests.benchmarks.evaluation import tiny_recognisers
from tests.benchmarks.evaluation.tiny_recognisers import CHARACTERS, SPECIAL, SYMBOLS

RATE = 44_100


def clip(pitch: float, seconds: float = 1.0, rate: int = RATE) -> Clip:
    time = np.arange(int(seconds * rate)) / rate
    sound = sum(np.sin(2 * np.pi * n * pitch * time) / n for n in range(1, 12))
    return (0.1 * sound * (1 + np.sin(20 * time))).astype(np.float32), rate


CLIPS = [clip(110), clip(170, 0.6), clip(300, 2.0, 16_000)]


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_recognisers.whisper(tmp_path_factory.mktemp("models") / "whisper-tiny-random")


def prompts(listener: Whisper, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The tokens that each decoding begins with."""
    model = listener._model
    seen: list[Any] = []
    inner = model.forward

    def forward(**inputs: Any) -> Any:
        seen.append(inputs["decoder_input_ids"])
        return inner(**inputs)

    monkeypatch.setattr(model, "forward", forward)
    listener.transcribe(CLIPS[:1])
    for row in seen[0].tolist():
        yield listener._processor.tokenizer.convert_ids_to_tokens(row)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_whisper_is_told_the_language_and_to_transcribe(
    whisper: Path, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Whisper(whisper, language)
    assert listener.name == "whisper (whisper-tiny-random)"
    (begins,) = prompts(listener, monkeypatch)
    expected = ["<|startoftranscript|>", f"<|{language}|>", "<|transcribe|>", "<|notimestamps|>"]
    assert begins == expected


def test_whisper_hears_in_a_batch_what_it_hears_alone(whisper: Path) -> None:
    listener = Whisper(whisper, "en")
    texts = listener.transcribe(CLIPS)
    assert texts == [listener.transcribe([one])[0] for one in CLIPS]
    assert len(set(texts)) > 1
    assert all(texts)
    letters = {"Ġ": " "}
    known = {letters.get(character, character) for character in CHARACTERS}
    assert set("".join(texts)) <= known
    assert not any(token in "".join(texts) for token in SPECIAL)


def test_whisper_gets_16_khz_whatever_the_clip_has(
    whisper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener, given = Whisper(whisper, "en"), []
    inner = listener._processor

    class Watching:
        def __call__(self, sounds: list[np.ndarray], **how: Any) -> Any:
            given.append(([len(sound) for sound in sounds], how["sampling_rate"]))
            return inner(sounds, **how)

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

    monkeypatch.setattr(listener, "_processor", Watching())
    listener.transcribe(CLIPS)
    assert given == [([16_000, 9_600, 32_000], 16_000)]
    low = [(soxr.resample(*clip(110), 16_000), 16_000)]
    assert listener.transcribe(low) == listener.transcribe(CLIPS[:1])


@pytest.fixture(scope="module")
def paraformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("funasr", reason="ci/stage.sh recognisers installs it")
    return tiny_recognisers.paraformer(tmp_path_factory.mktemp("models") / "paraformer-random")


def test_paraformer_hears_simplified_characters_at_any_rate(paraformer: Path) -> None:
    listener = Paraformer(paraformer, "zh")
    assert listener.name == "paraformer (paraformer-random)"
    texts = listener.transcribe(CLIPS)
    assert len(texts) == 3
    assert len(set(texts)) > 1
    said = set("".join(texts)) - set(" ")
    assert said
    assert said <= set("我们后会吗门车马书长东")
    # Or nothing was simplified, and the test showed nothing.
    assert set("後會嗎門車馬書長東") <= set(SYMBOLS)
    low = [(soxr.resample(*clip(110), 16_000), 16_000)]
    assert listener.transcribe(low) == texts[:1]


def test_paraformer_hears_nothing_in_silence(paraformer: Path) -> None:
    listener = Paraformer(paraformer, "zh")
    predictor = listener._model.model.predictor.cif_output
    predictor.weight.data.zero_()
    predictor.bias.data.fill_(-20.0)
    assert listener.transcribe([(np.zeros(1600, np.float32), 16_000)]) == [""]


def test_weights_that_do_not_fit_are_no_paraformer(paraformer: Path, tmp_path: Path) -> None:
    import torch

    for name in ("config.yaml", "tokens.json", "am.mvn"):
        (tmp_path / name).write_bytes((paraformer / name).read_bytes())
    with pytest.raises(
        RecogniserUnavailable, match=r"holds no Paraformer for funasr: no model\.pt"
    ):
        Paraformer(tmp_path, "zh")
    weights = torch.load(paraformer / "model.pt")
    weights["decoder.output_layer.bias"] = torch.zeros(3)
    torch.save(weights, tmp_path / "model.pt")
    with pytest.raises(RecogniserUnavailable, match="size mismatch"):
        Paraformer(tmp_path, "zh")


def test_a_recogniser_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    for name, weights, language, says in (
        ("whisper", None, "en", "download openai/whisper-large-v3 .* name its folder"),
        ("whisper", tmp_path / "none", "en", "none is no folder: download openai/whisper-large"),
        ("whisper", tmp_path, "en", "holds no Whisper for transformers"),
        ("paraformer", None, "zh", "download paraformer-zh"),
        ("paraformer", tmp_path, "zh", "no config.yaml, model.pt, tokens.json, am.mvn"),
        ("paraformer", tmp_path, "en", "hears no en"),
        ("pocketsphinx", None, "zh", "hears no zh"),
    ):
        with pytest.raises(RecogniserUnavailable, match=says):
            recognisers.RECOGNISERS[name](weights, language)
