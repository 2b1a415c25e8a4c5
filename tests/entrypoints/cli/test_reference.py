"""The committed reference is what the code says."""

from pathlib import Path

import pytest

from sglang_omni.config.option_list import list_options
from sglang_omni.entrypoints.cli.config_arguments import to_flag
from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.cli.reference import describe_type, render_reference

COMMITTED = Path(__file__).parents[3] / "docs" / "reference.md"


def test_the_committed_reference_is_made_of_this_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reference"]) == 0
    assert capsys.readouterr().out == COMMITTED.read_text(encoding="utf-8"), (
        "run: sgl-omni reference > docs/reference.md"
    )


def test_every_route_option_and_body_is_in_it() -> None:
    text = render_reference()
    for option in list_options():
        assert f"`{to_flag(option)}`" in text
    for route in (
        "POST /v1/chat/completions",
        "WS /v1/realtime",
        "DELETE /v1/audio/voices/{voice}",
    ):
        assert f"| `{route}` |" in text
    for body in ("ChatBody", "SpeechBody", "BatchBody", "POST /v1/audio/voices (form)"):
        assert f"\n### {body}\n" in text


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "number", "minimum": 0.25, "maximum": 4}, "number from 0.25 to 4"),
        ({"enum": ["wav", "pcm"]}, '`"wav"`, `"pcm"`'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"type": "array", "items": {"$ref": "#/x/Tool"}}, "list of [Tool](#tool)"),
        ({}, "anything"),
    ],
)
def test_what_is_taken_is_told_in_words(schema: dict[str, object], words: str) -> None:
    assert describe_type(schema) == words
