"""A packed model loads strictly, and of Ming-mini SGLang says what the reference says."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
import torch

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.speakers import PRESETS
from cookbook.ming_mini.thinker.answer import Answerer, EncodedPrompt
from cookbook.ming_mini.thinker.checks import is_right
from cookbook.ming_mini.thinker.configs import MINI
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.layout import write_layout
from cookbook.ming_mini.thinker.make import ShardMaker, make_shard
from cookbook.ming_mini.thinker.model import checkpoint_tensors, new_thinker
from cookbook.ming_mini.thinker.pack import load_thinker, pack
from cookbook.ming_mini.thinker.speech_input import at_16khz
from cookbook.ming_mini.thinker.tasks import KINDS, Kind, groups
from cookbook.ming_mini.thinker.tokenizer import build_tokenizer
from cookbook.ming_mini.thinker.train import Settings, Trainer
from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.thinker.contract import Features, ThinkerRequest, ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.media.limits import Kind as MediaKind
from sglang_omni.models.weights import TensorFolder
from sglang_omni.protocol.sampling import SamplingParams
from tests.cookbook.thinker.conftest import CPU, LEXICON, hum

STEPS = 3
ITEMS, MOST = 10, 40
LARGEST_BYTES = 24 * 2**20

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def checkpoint(
    folder: Path, workshop: ShardMaker, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A small model after a few steps of every kind, packed from its pieces."""
    trainer = Trainer(folder, Settings(60.0, tokens=900, text_only=0.0), CPU)
    for kind in KINDS:
        trainer.library.add(kind, make_shard(workshop, kind, "pack", 12))
    for _ in range(STEPS):
        trainer.train()
    weights, packed = (tmp_path_factory.mktemp(name) for name in ("weights", "packed"))
    trainer.save(weights)
    pack(load_thinker(folder, weights), folder, packed)
    return packed


async def test_training_may_go_on_from_what_was_packed(checkpoint: Path, folder: Path) -> None:
    trainer, packed = Trainer(folder, Settings(60.0, tokens=900), CPU), TensorFolder(checkpoint)
    heads = trainer.model.heads.state_dict()
    trainer.load_weights(checkpoint)
    for name, tensor in checkpoint_tensors(trainer.model):
        assert torch.equal(tensor, packed[name].to(tensor.dtype)), name
    assert all(
        torch.equal(heads[name], one) for name, one in trainer.model.heads.state_dict().items()
    )


async def test_a_trained_model_is_packed_as_the_reference_reads_it(checkpoint: Path) -> None:
    for kind in ("text", "picture"):
        item = asked_items(kind, LEXICON, 1)[0]
        assert Answerer(checkpoint).tokens(Answerer(checkpoint).build_prompt(item), 2)


@pytest.fixture(scope="module")
def reference() -> Answerer:
    return Answerer(MING_MINI)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[EngineProcess]:
    settings = ThinkerSettings(MING_MINI, max_total_tokens=4096)
    factory = "sglang_omni.engines.thinker.worker:open_worker"
    spec = ProcessSpec("thinker", factory, settings, build_environment(settings, threads=1))
    process = EngineProcess(spec)
    await process.start()
    yield process
    await process.stop()


@pytest.mark.extended
@pytest.mark.parametrize("kind", KINDS)
async def test_the_engine_gives_the_references_tokens(
    kind: Kind, engine: EngineProcess, reference: Answerer
) -> None:
    right = 0
    for item in asked_items(kind, LEXICON, ITEMS):
        clip = at_16khz(hum(item.speech, PRESETS[0])) if item.speech else None
        asked = reference.build_prompt(item, clip)
        expected = reference.tokens(asked, MOST)
        outputs = [output async for output in engine.submit(request(asked, item))]
        assert [token for output in outputs for token in output.token_ids] == expected
        right += is_right(item, reference.tokenizer.decode(expected))
    # Tones are no words.
    assert kind == "speech" or right >= 0.6 * ITEMS


def asked_items(kind: Kind, lexicon: Lexicon, count: int) -> list[Item]:
    stream = groups(kind, "engine", lexicon, "held_out")
    return [next(stream)[0] for _ in range(count)]


def request(asked: EncodedPrompt, item: Item) -> ThinkerRequest:
    """A greedy request as the pipeline sends it."""
    features: tuple[Features, ...] = ()
    if asked.rows is not None:
        places = np.flatnonzero(asked.routes.numpy())
        array = SharedArray()
        rows = asked.rows.numpy()
        grid: tuple[tuple[int, int, int], ...] = ()
        if item.scene:
            height, width = item.scene.size
            grid = ((1, height // 16, width // 16),)
        run = ((int(places[0]), int(places[-1])),)
        digest = hashlib.blake2b(rows.tobytes(), digest_size=8).digest()
        modality: MediaKind = "image" if item.scene else "audio"
        layout = array.write(rows)
        number = int.from_bytes(digest, "little")
        features = (Features(modality, array, layout, run, number, grid),)
    return ThinkerRequest(asked.ids, SamplingParams(MOST, temperature=0.0), features)


async def test_the_packed_model_of_full_size_is_small(tmp_path: Path) -> None:
    layout, packed = tmp_path / "layout", tmp_path / "packed"
    words = [f" {chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(380)]
    write_layout(layout, build_tokenizer(words), MINI)
    size = pack(new_thinker(layout, 0), layout, packed)
    assert size < LARGEST_BYTES
    Answerer(packed)


async def test_two_ranks_divide_the_model_of_full_size() -> None:
    heads = ("num_key_value_heads", "num_attention_heads", "moe_intermediate_size")
    sizes = MINI.llm | {"num_key_value_heads": 2, "num_attention_heads": 4}
    assert not [name for name in heads if sizes[name] % 2]
    assert MINI.vision["num_heads"] % 2 == MINI.vision["intermediate_size"] % 2 == 0


async def test_packing_rounds_to_bfloat16_and_nothing_else(
    checkpoint: Path, folder: Path, reference: Answerer
) -> None:
    weight = reference._thinker.lm_head.weight
    assert torch.equal(weight, weight.bfloat16().float())
