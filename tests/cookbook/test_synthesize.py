"""Every clip has one form; the synthesizers themselves run only where they are installed."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from cookbook.ming_mini.corpus import Chunk, CorpusFolder, write_chunks
from cookbook.ming_mini.speakers import PRESETS, Speaker, held_out_speakers
from cookbook.ming_mini.synthesize import (
    LOUDNESS,
    PAD,
    Clip,
    SynthesisError,
    normalise_clip,
    synthesize,
)
from cookbook.ming_mini.vocoder import RATE


def test_silence_around_speech_becomes_a_fixed_pad() -> None:
    tone = np.sin(np.arange(RATE) * 0.05).astype(np.float32)
    clip = normalise_clip(
        np.concatenate((np.zeros(9000), tone, np.zeros(20_000))).astype(np.float32)
    )
    assert abs(len(clip) - (RATE + 2 * PAD)) <= RATE // 50
    assert not clip[:PAD].any()
    assert not clip[-PAD:].any()
    assert np.sqrt(np.square(clip[PAD:-PAD]).mean()) == pytest.approx(LOUDNESS, rel=0.05)


def test_silence_is_refused() -> None:
    with pytest.raises(SynthesisError):
        normalise_clip(np.zeros(RATE, dtype=np.float32))


@pytest.mark.parametrize("speaker", [PRESETS[3], held_out_speakers()[-1]], ids=lambda one: one.name)
def test_a_speaker_says_a_sentence_the_same_way_twice(speaker: Speaker) -> None:
    program = "flite" if speaker.engine == "flite" else "espeak-ng"
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    pytest.importorskip("pyworld")
    first, second = (synthesize("Good morning.", speaker) for _ in range(2))
    assert np.array_equal(first, second)
    assert 0.4 < len(first) / RATE < 2.5


def test_chunks_are_read_once_as_they_were_written(tmp_path: Path) -> None:
    made = [Clip(f"text {n}", n, np.full(1000 + n, n, dtype=np.int16)) for n in range(5)]
    write_chunks(tmp_path, made, hours=1)
    folder = CorpusFolder(tmp_path)
    (chunk,) = folder.new_chunks()
    assert isinstance(chunk, Chunk)
    assert chunk.texts[3] == "text 3"
    assert np.array_equal(chunk.clip(3), made[3].samples)
    assert not list(folder.new_chunks())
