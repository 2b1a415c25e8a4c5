"""`sgl-omni normalize`: the words that are spoken for a text."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sglang_omni.entrypoints.cli.main import main


def normalize(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    assert main(["normalize", *map(str, arguments)]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Meet me at 3:30pm."], "Meet me at three thirty PM."),
        (["12"], "twelve"),
        (["12", "--language", "zh"], "十二"),
        (["今天有3个人"], "今天有三个人"),
        (["First 1\\nthen 2"], "First one, then two"),
        (["<speak>A <sub alias='bee'>B</sub></speak>"], "A bee"),
        ([""], ""),
    ],
)
def test_the_words_of_a_text_are_printed(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert normalize(capsys, *arguments) == [words]


def test_a_lexicon_comes_before_the_rules(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "lexicon.json"
    file.write_text(json.dumps({"SQL": "sequel"}))
    assert normalize(capsys, "SQL 2", "--lexicon", file) == ["sequel two"]


def test_a_table_tells_how_each_form_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert normalize(capsys, "Meet me on 5/6/2024. 我有5元", "--explain") == [
        "Meet me on May sixth, twenty twenty-four. 我有五元",
        "  WRITTEN   CLASS  SPOKEN",
        "  5/6/2024  date   May sixth, twenty twenty-four",
        "  5         money  五",
    ]
    assert normalize(capsys, "Nothing here", "--explain") == ["Nothing here"]
    ssml = "<speak>A <sub alias='bee'>B 1</sub></speak>"
    assert normalize(capsys, ssml, "--explain")[2] == "  B 1      SSML   bee"


def test_each_line_of_the_input_is_a_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\n\n2\\n3\nend"))
    assert normalize(capsys) == ["one", "", "two, three", "end"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["<speak>a<b/></speak>"], "<b> is not supported"),
        (["a", "--lexicon", "/nowhere.json"], "--lexicon: /nowhere.json: "),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(["normalize", *arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_a_filter_answers_each_line_at_once() -> None:
    command = [sys.executable, "-m", "sglang_omni", "normalize"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, words in (("1", "one"), ("2", "two")):
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{words}\n"
        process.stdin.close()
        assert process.wait(timeout=10) == 0
