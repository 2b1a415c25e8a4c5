"""Shards, a tiny training, the start from the packed checkpoint, export and packing."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini.thinker.answer import Answerer
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.layout import write_layout
from cookbook.ming_mini.thinker.model import TrainableThinker, checkpoint_tensors, new_thinker
from cookbook.ming_mini.thinker.pack import pack
from cookbook.ming_mini.thinker.shards import Shard, ShardFolder, write_shard
from cookbook.ming_mini.thinker.tasks import Kind
from cookbook.ming_mini.thinker.tokenizer import build_tokenizer
from cookbook.ming_mini.thinker.train import Settings, Trainer
from cookbook.ming_mini.weights import load_pieces
from cookbook.ming_mini_2.thinker.configs import MINI_2, WORDS
from cookbook.ming_mini_2.thinker.excluded import Excluded
from cookbook.ming_mini_2.thinker.export import export, load_exported
from cookbook.ming_mini_2.thinker.layout import extend_words, learn_words, packed_words
from cookbook.ming_mini_2.thinker.make import ShardMaker, make_shard
from cookbook.ming_mini_2.thinker.pack import load_thinker
from cookbook.ming_mini_2.thinker.start_weights import start_from, token_rows
from cookbook.ming_mini_2.thinker.tasks import CURRICULUM, KINDS
from cookbook.ming_mini_2.thinker.train import load_start
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.models.ming.thinker.routing import IMAGE
from sglang_omni.models.weights import TensorFolder
from tests.cookbook.thinker.conftest import CPU, LEXICON

COUNTS: dict[Kind, int] = {"text": 40, "picture": 8, "speech": 12, "film": 3}
SETTINGS = Settings(
    10.0,
    tokens=3000,
    rate=Rate(3e-3, 3e-5, 5),
    text_only=0.0,
    shares=(("text", 0.3), ("picture", 0.2), ("speech", 0.2), ("film", 0.3)),
    average=0.9,
)
STEPS = 25
MAX_BYTES = 28_000_000
NEW_WORDS = ("quokka", " quokka", " zeppelin")


@pytest.fixture(scope="module")
def shards(maker: ShardMaker) -> dict[Kind, Shard]:
    return {kind: make_shard(maker, kind, "seed", count) for kind, count in COUNTS.items()}


@pytest.fixture(scope="module")
def trainer(folder: Path, shards: dict[Kind, Shard]) -> Trainer:
    found = Trainer(folder, SETTINGS, CPU, CURRICULUM)
    for kind, shard in shards.items():
        found.library.add(kind, shard)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_shards_are_repeatable_and_survive_the_disk(
    kind: Kind, maker: ShardMaker, shards: dict[Kind, Shard], tmp_path: Path
) -> None:
    write_shard(tmp_path, kind, "seed", make_shard(maker, kind, "seed", COUNTS[kind]))
    ((found, read),) = ShardFolder(tmp_path).new()
    assert found == kind
    for one in fields(Shard):
        assert np.array_equal(getattr(shards[kind], one.name), getattr(read, one.name)), one.name


def test_held_out_clips_are_in_no_training_shard(maker: ShardMaker) -> None:
    held_out = make_shard(ShardMaker(**vars(maker) | {"split": "held_out"}), "speech", "s", 20)
    training = make_shard(maker, "speech", "s", 20)
    found = [{tuple(shard.tokens(n)) for n in range(len(shard))} for shard in (held_out, training)]
    assert found[0]
    assert not found[0] & found[1]


def test_speech_without_clips_is_an_error(maker: ShardMaker) -> None:
    with pytest.raises(ValueError, match="clips"):
        make_shard(ShardMaker(**vars(maker) | {"clips": None}), "speech", "s", 2)


def test_films_route_and_place_their_frames(trainer: Trainer) -> None:
    batch = trainer.library.draw("film", 1500)
    frames, height, width = batch.size
    pairs, rows, columns = -(-frames // 2), height // 32, width // 32
    for ids, routes, positions in zip(
        batch.ids, batch.routes, batch.positions.transpose(1, 0, 2), strict=True
    ):
        visual = np.flatnonzero(ids == trainer.model.frame_token)
        assert len(visual) == pairs * rows * columns
        assert (routes[visual] == IMAGE).all()
        # One time for all tokens of a pair.
        assert len(np.unique(positions[0, visual])) == pairs
    assert len(batch.places) == len(batch.ids) * pairs * rows * columns


@pytest.mark.extended
def test_a_tiny_training_lowers_every_loss(trainer: Trainer) -> None:
    # One step is compared with itself: another has other items, whose losses differ by as much.
    drawn = trainer.draw()
    first = trainer.train(drawn)
    for _ in range(STEPS):
        trainer.train()
    last = trainer.train(drawn)
    assert set(KINDS) <= set(first)
    for kind in KINDS:
        assert float(last[kind]) < 0.9 * float(first[kind]), kind
    assert float(last["skipped"]) == 0


def test_what_is_saved_is_the_average(trainer: Trainer, folder: Path, tmp_path: Path) -> None:
    trainer.train()
    trainer.save(tmp_path)
    saved, last = load_pieces(tmp_path, "thinking"), trainer.model.state_dict()
    name = "thinker.lm_head.weight"
    assert torch.equal(saved[name], trainer.weights()[name])
    assert not torch.equal(saved[name], last[name])
    other = Trainer(folder, SETTINGS, CPU, CURRICULUM)
    other.resume(tmp_path)
    assert torch.equal(other.weights()[name], saved[name])
    assert torch.equal(other.model.state_dict()[name], last[name])


def test_accuracy_is_of_the_average_and_leaves_the_model(trainer: Trainer) -> None:
    before = {name: one.clone() for name, one in trainer.model.state_dict().items()}
    measured = trainer.accuracy(trainer.library)
    assert set(measured) <= set(CURRICULUM.tasks)
    assert "transcribe" in measured
    after = trainer.model.state_dict()
    assert all(torch.equal(after[name], one) for name, one in before.items())


def test_exported_pieces_are_small_and_pack_into_what_the_product_loads(
    trainer: Trainer, folder: Path, tmp_path: Path
) -> None:
    trainer.save(tmp_path / "weights")
    files = export(tmp_path / "weights", tmp_path / "out", 1_500_000)
    assert len(files) > 1
    assert all(file.stat().st_size < 1_500_000 for file in files)
    thinking = load_thinker(folder, tmp_path / "out")
    pack(thinking, folder, tmp_path / "checkpoint")
    packed = TensorFolder(tmp_path / "checkpoint")
    average = load_pieces(tmp_path / "weights", "thinking")
    assert torch.equal(packed["model.lm_head.weight"], average["thinker.lm_head.weight"].bfloat16())
    answerer = Answerer(tmp_path / "checkpoint")
    asked = answerer.build_prompt(Item("count", "Hello", ""))
    assert 1 <= len(answerer.tokens(asked, 4)) <= 4


def test_a_tensor_larger_than_a_piece_is_named(trainer: Trainer, tmp_path: Path) -> None:
    trainer.save(tmp_path)
    with pytest.raises(ValueError, match="more than 1000"):
        export(tmp_path, tmp_path / "out", 1000)


def test_a_training_goes_on_from_exported_weights(
    trainer: Trainer, folder: Path, tmp_path: Path
) -> None:
    trainer.save(tmp_path / "weights")
    export(tmp_path / "weights", tmp_path / "out")
    other = Trainer(folder, SETTINGS, CPU, CURRICULUM)
    load_start(other, tmp_path / "out", folder)
    wanted = load_exported(tmp_path / "out")
    for name, tensor in other.model.state_dict().items():
        assert torch.equal(tensor, wanted[name]), name
        assert torch.equal(other.weights()[name], wanted[name]), name
    with pytest.raises(FileNotFoundError):
        load_start(other, tmp_path / "nowhere", folder)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layout of a thinker with a layer and a few words more than the packed one."""
    path = tmp_path_factory.mktemp("grown")
    layers = int(MINI_2.llm["num_hidden_layers"]) + 1
    larger = replace(MINI_2, llm={**MINI_2.llm, "num_hidden_layers": layers})
    write_layout(path, build_tokenizer([*packed_words(MING_MINI), *NEW_WORDS]), larger)
    return path


@pytest.fixture(scope="module")
def started(grown: Path) -> TrainableThinker:
    model = new_thinker(grown, seed=1, names=len(CURRICULUM.marks))
    ways = start_from(model, grown, MING_MINI)
    assert ways.identity
    assert all(".layers.7." in name for name in (*ways.identity, *ways.new))
    assert sorted(ways.mapped) == ["model.lm_head.weight", "model.model.word_embeddings.weight"]
    return model


def test_words_of_the_packed_model_come_first(excluded: Excluded) -> None:
    kept = packed_words(MING_MINI)
    words = extend_words(kept[:-20], learn_words(LEXICON, excluded, sampled=100))
    assert words[: len(kept) - 20] == kept[:-20]
    assert len(kept) - 20 < len(words) <= WORDS


def test_the_size_of_the_model(tmp_path: Path) -> None:
    write_layout(tmp_path, build_tokenizer(packed_words(MING_MINI)), MINI_2)
    model = new_thinker(tmp_path, seed=1, names=len(CURRICULUM.marks))
    tensors = [tensor for _, tensor in checkpoint_tensors(model)]
    assert 12.9e6 < sum(tensor.numel() for tensor in tensors) < 13.9e6
    assert 2 * sum(tensor.numel() for tensor in tensors) < MAX_BYTES


def test_new_words_start_as_the_mean_of_their_bytes(started: TrainableThinker, grown: Path) -> None:
    new, old = (Tokenizer.from_file(str(one / "tokenizer.json")) for one in (grown, MING_MINI))
    rows = token_rows(new, old)
    table = started.thinker.model.word_embeddings.weight
    packed = TensorFolder(MING_MINI)["model.model.word_embeddings.weight"].float()
    known = old.get_vocab()
    words = [n for n in range(new.get_vocab_size()) if new.id_to_token(n) not in known]
    assert new.get_vocab_size() - old.get_vocab_size() == len(words) == len(NEW_WORDS)
    for number in words[:20]:
        assert len(rows[number]) == len(new.id_to_token(number))
        assert torch.allclose(table[number], packed[rows[number]].mean(0))
    role = new.token_to_id("<role>")
    assert torch.equal(table[role], packed[old.token_to_id("<role>")])


def test_the_grown_model_answers_as_the_packed_one(
    started: TrainableThinker, grown: Path, tmp_path: Path
) -> None:
    """With a layer that adds nothing, and for tokens that both have."""
    pack(started, grown, tmp_path)
    item = Item("arithmetic", "What is 30 + 12?", "")
    before, after = Answerer(MING_MINI), Answerer(tmp_path)
    wanted = before.answer(item, most=24)
    assert "42" in wanted
    asked = before.build_prompt(item)
    names = [before.tokenizer.token_name(one) for one in asked.ids]
    vocabulary = Tokenizer.from_file(str(grown / "tokenizer.json")).get_vocab()
    ids = tuple(vocabulary[name] for name in names)
    same = after.tokens(type(asked)(ids, asked.positions, asked.delta, asked.routes, None), 24)
    assert after.tokenizer.decode(same) == wanted
