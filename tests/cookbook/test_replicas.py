"""Copies of a model that train apart and meet."""

from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist

from cookbook.ming_mini.corpus import CorpusFolder
from cookbook.ming_mini.replicas import ALONE, PERIOD, Replicas, join_replicas

COPIES = 2


def test_one_copy_goes_on_as_its_clock_says() -> None:
    weight = torch.ones(3)
    assert ALONE.meet(0, True, [weight])
    assert not ALONE.meet(1, False, [weight])
    assert weight.tolist() == [1, 1, 1]


def test_without_torchrun_there_is_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    replicas, device = join_replicas(torch.device("cpu"))
    assert replicas == ALONE
    assert replicas.is_first
    assert device == torch.device("cpu")


def test_copies_draw_with_seeds_of_their_own() -> None:
    assert len({Replicas(rank, 4).seed(7) for rank in range(4)}) == 4
    assert ALONE.seed(7) == 7


def test_every_chunk_is_in_one_copys_share(tmp_path: Path) -> None:
    for number in range(7):
        np.savez(
            tmp_path / f"chunk-{number:05d}.npz",
            samples=np.zeros(2),
            offsets=np.arange(2),
            speakers=np.array([number]),
            texts=np.array(["a"]),
        )
    folders = [CorpusFolder(tmp_path, Replicas(rank, 3)) for rank in range(3)]
    shares = [
        [int(chunk.speakers[0]) for chunk in (*folder.new_chunks(), *folder.new_chunks())]
        for folder in folders
    ]
    assert shares == [[0, 3, 6], [1, 4], [2, 5]]


def test_copies_start_equal_meet_every_few_steps_and_end_together(tmp_path: Path) -> None:
    rendezvous = tmp_path / "rendezvous"
    with get_context("spawn").Pool(COPIES) as pool:
        pool.starmap(_copy, [(rank, f"file://{rendezvous}", tmp_path) for rank in range(COPIES)])
    seen = [torch.load(tmp_path / f"{rank}.pt") for rank in range(COPIES)]
    assert torch.equal(seen[0]["start"], seen[1]["start"])
    assert seen[0]["start"].tolist() == [[0, 0], [0, 0]]
    # Step 0 meets; after that each copy adds its own number until the next meeting.
    assert [one["apart"].tolist() for one in seen] == [[[8, 8], [8, 8]], [[16, 16], [16, 16]]]
    assert all(one["together"].tolist() == [[12, 12], [12, 12]] for one in seen)
    # The second copy has had enough at step 11; both end when they meet next.
    assert [one["steps"] for one in seen] == [2 * PERIOD, 2 * PERIOD]


def _copy(rank: int, rendezvous: str, folder: Path) -> None:
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=COPIES)
    replicas = Replicas(rank, COPIES)
    weight, seen, step = torch.full((2, 2), float(rank)), {}, 0
    replicas.start_equal([weight])
    seen["start"] = weight.clone()
    while replicas.meet(step, not (rank == 1 and step > 10), [weight, torch.zeros(3)]):
        if step == PERIOD:
            seen["together"] = weight.clone()
        weight += rank + 1
        step += 1
        if step == PERIOD:
            seen["apart"] = weight.clone()
    torch.save({**seen, "steps": step}, folder / f"{rank}.pt")
    dist.destroy_process_group()
