"""A small thinker with the tokenizer of all tasks, and a folder of hummed clips."""

from pathlib import Path

import numpy as np
import pytest

from cookbook.ming_mini.speakers import PRESETS
from cookbook.ming_mini.thinker.configs import SMALL
from cookbook.ming_mini.thinker.layout import write_layout
from cookbook.ming_mini.thinker.scenes import SYSTEM_FONTS
from cookbook.ming_mini.thinker.tokenizer import build_tokenizer
from cookbook.ming_mini_2.thinker.clip_folder import SpokenClip, write_chunk
from cookbook.ming_mini_2.thinker.excluded import Excluded, read_excluded
from cookbook.ming_mini_2.thinker.layout import learn_words
from cookbook.ming_mini_2.thinker.make import Clips, ShardMaker
from cookbook.ming_mini_2.thinker.spoken_texts import SpokenText, spoken_texts
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from tests.cookbook.thinker.conftest import LEXICON, hum

CLIPS, HELD_OUT = 24, 3
MAX_WORDS = 10


@pytest.fixture(scope="session", autouse=True)
def fonts() -> None:
    if not SYSTEM_FONTS.is_dir():
        pytest.importorskip("matplotlib", reason="no fonts to draw with")


@pytest.fixture(scope="session")
def excluded() -> Excluded:
    return read_excluded()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, excluded: Excluded) -> Path:
    """The layout of a small thinker."""
    path = tmp_path_factory.mktemp("layout_2")
    write_layout(path, build_tokenizer(learn_words(LEXICON, excluded, sampled=60)), SMALL)
    return path


@pytest.fixture(scope="session")
def tokenizer(folder: Path) -> ThinkerTokenizer:
    return ThinkerTokenizer(folder)


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory, excluded: Excluded) -> Clips:
    """Two chunks of clips, of sentences and of questions, held out or not."""
    path, texts = tmp_path_factory.mktemp("clips"), dict[str, SpokenText]()
    stream = spoken_texts(3, LEXICON, excluded)
    held_out = 0
    while len(texts) < CLIPS or held_out < HELD_OUT:
        one = next(stream)
        if one.text not in texts and len(one.text.split()) <= MAX_WORDS:
            texts[one.text] = one
            held_out += one.question().split == "held_out"
    made = [SpokenClip(hummed(text), text, "hum") for text in texts]
    for number in range(2):
        write_chunk(path / f"chunk-{number:05d}.npz", made[number::2])
    return Clips(path, texts)


def hummed(text: str) -> np.ndarray:
    """A tone for every word: int16 at 44.1 kHz."""
    return (hum(text, PRESETS[0]) * 32767).astype(np.int16)


@pytest.fixture(scope="session")
def maker(tokenizer: ThinkerTokenizer, excluded: Excluded, clips: Clips) -> ShardMaker:
    return ShardMaker(tokenizer, LEXICON, "train", excluded, clips)
