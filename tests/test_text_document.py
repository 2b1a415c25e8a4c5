"""The examples of docs/text.md give what it says they give."""

import json
import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.http.routes.normalize import normalize
from sglang_omni.entrypoints.notices import build_notice
from sglang_omni.entrypoints.requests.preview import preview_input
from sglang_omni.models.ming.speech_text import MingSpeechText
from sglang_omni.models.speech_text import ReadingOptions, preview_by_rules
from sglang_omni.normalization.say_as import DATE_FORMATS, KINDS
from sglang_omni.normalization.ssml_elements import ELEMENTS, STRENGTHS
from sglang_omni.pipeline.request import UnspokenText
from sglang_omni.protocol.speech import NormalizeBody
from tests.entrypoints.http.fake import FakeBackend

DOCUMENT = (Path(__file__).parents[1] / "docs" / "text.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    return str(found)


def rows(text: str, head: str) -> list[list[str]]:
    """The cells of the table with this head."""
    (table,) = re.findall(rf"^\| {re.escape(head)} \|.*?\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.M)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


def in_code(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


READ = rows(section("What is read how"), "Class")
SPOKEN = rows(section("SSML"), "SSML")


@pytest.mark.parametrize(("text", "spoken"), [row[1:] for row in READ])
def test_a_text_is_read_as_the_table_says(text: str, spoken: str) -> None:
    assert preview_by_rules(text).text == spoken


@pytest.mark.parametrize(("ssml", "spoken"), SPOKEN)
def test_ssml_is_read_as_the_table_says(ssml: str, spoken: str) -> None:
    source = unescape(ssml.strip("`"))
    assert preview_input(source, ReadingOptions(), preview_by_rules).text == spoken


def test_the_tables_have_all_that_is_supported() -> None:
    text = section("SSML")
    named = {name for row in rows(text, "Element") for name in re.findall(r"<([\w-]+)", row[0])}
    assert named == set(ELEMENTS)
    assert set(KINDS) | set(DATE_FORMATS) <= in_code(text)
    for name, seconds in STRENGTHS.items():
        assert f"`{name}` {seconds:g} s" in text


def test_the_commands_print_what_stands_below_them(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("console")
    examples = re.findall(r"^\$ (.+)\n((?:(?!\$ ).+\n)+)", block, re.MULTILINE)
    assert len(examples) == 3
    for command, output in examples:
        name, *arguments = shlex.split(command)
        assert name == "sgl-omni"
        assert main(arguments) == 0
        assert capsys.readouterr().out == output


def test_the_objects_are_what_the_server_takes_and_answers() -> None:
    lexicon, body, answer, notice = map(json.loads, blocks("json"))
    options = NormalizeBody(input="a", lexicon=lexicon)
    assert options.lexicon == lexicon
    backend: Any = FakeBackend()
    backend.speech_text = MingSpeechText()
    assert normalize(NormalizeBody(**body), backend) == answer
    assert build_notice(UnspokenText(tuple(notice["words"]))) == notice
