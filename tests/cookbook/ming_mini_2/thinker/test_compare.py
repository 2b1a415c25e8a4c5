"""Two runs of the suite are compared question by question."""

import json
import sys
from pathlib import Path

import pytest

from cookbook.ming_mini_2.thinker.evaluation import compare
from cookbook.ming_mini_2.thinker.evaluation.compare import (
    Answer,
    compare_kinds,
    read_answers,
    sign_test,
)


def answers(row: str, right: str) -> list[Answer]:
    """One answer for each letter: + is right, - is wrong."""
    return [
        {"row": row, "question": f"q{number}", "said": sign, "calls": [], "right": sign == "+"}
        for number, sign in enumerate(right)
    ]


def test_points_are_lost_by_kind() -> None:
    before = answers("sums", "+++++++++-") + answers("words", "++--")
    after = answers("sums", "++++++++--") + answers("words", "++++")
    kinds = compare_kinds(before, after)
    assert list(kinds) == ["all", "sums", "words"]
    sums, words = kinds["sums"], kinds["words"]
    assert (sums.items, sums.before, sums.after, sums.only_before, sums.only_after) == (
        *(10, 90.0, 80.0),
        *(1, 0),
    )
    assert sums.lost == pytest.approx(10)
    assert (words.lost, words.only_before, words.only_after) == (-50, 0, 2)
    assert (sums.same_replies, words.same_replies) == (9, 2)
    assert kinds["all"].items == 14


def test_chance_is_that_of_fair_coins() -> None:
    assert sign_test(0, 0) == 1
    assert sign_test(3, 3) == 1
    assert sign_test(0, 5) == sign_test(5, 0) == 2 / 2**5
    assert sign_test(1, 4) == pytest.approx(2 * 6 / 2**5)


def test_runs_over_other_questions_are_not_compared() -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        compare_kinds(answers("sums", "++"), answers("sums", "+"))
    with pytest.raises(ValueError, match="is not"):
        compare_kinds(answers("sums", "+"), [{**answers("sums", "+")[0], "question": "other"}])


def test_the_command_fails_for_a_kind_that_lost_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = "before", "worse", "same"
    runs = answers("sums", "++++"), answers("sums", "+++-"), answers("sums", "++++")
    for name, run in zip(names, runs, strict=True):
        lines = "".join(json.dumps(answer) + "\n" for answer in run)
        (tmp_path / name).write_text(lines, encoding="utf-8")

    def compared_with(name: str) -> int:
        files = ["--before", str(tmp_path / "before"), "--after", str(tmp_path / name)]
        monkeypatch.setattr(sys, "argv", ["compare", *files, "--out", str(tmp_path / "out")])
        return compare.main()

    assert compared_with("same") == 0
    assert compared_with("worse") == 1
    assert "points lost: all, sums" in capsys.readouterr().out
    assert json.loads((tmp_path / "out").read_text())["kinds"]["sums"]["lost"] == 25
    assert read_answers([tmp_path / "same", tmp_path / "worse"]) == [*runs[2], *runs[1]]
