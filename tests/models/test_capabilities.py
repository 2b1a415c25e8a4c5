"""What a checkpoint says it can do."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cookbook.ming_mini_2.capabilities import THINKER_ABILITIES, speech_abilities
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.models.capabilities import FILE, language_names, read_capabilities
from sglang_omni.models.ming.capabilities import RELEASED
from sglang_omni.protocol.errors import CheckpointError


def test_a_checkpoint_that_says_nothing_is_as_the_released_one(tmp_path: Path) -> None:
    assert read_capabilities(tmp_path, RELEASED) == RELEASED


def test_what_a_checkpoint_leaves_out_is_as_in_the_released_one(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"speech_languages": ["en"]}')
    assert read_capabilities(tmp_path, RELEASED) == replace(RELEASED, speech_languages=("en",))


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{"speech_langages": ["en"]}', "speech_langages"),
        ('{"speech_languages": "en"}', "speech_languages"),
        ('{"speech_tasks": ["singing"]}', "speech_tasks.0"),
        ('{"speech_instructions": null}', "speech_instructions"),
        ("[]", "must hold a JSON object"),
        ("{", "must hold a JSON object"),
    ],
)
def test_a_wrong_file_is_refused_by_its_field(tmp_path: Path, content: str, place: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(CheckpointError, match=f"{FILE}.*{place}"):
        read_capabilities(tmp_path, RELEASED)


def test_the_bundled_model_says_what_its_recipes_say() -> None:
    shipped: dict[str, Any] = json.loads((MING_MINI / FILE).read_text())
    assert shipped == {**speech_abilities(), **THINKER_ABILITIES}
    assert read_capabilities(MING_MINI, RELEASED).name == "Ming-mini"


def test_languages_are_words() -> None:
    assert language_names(("en",)) == "English"
    assert language_names(("zh", "en")) == "Chinese and English"
    assert language_names(("zh", "en", "eo")) == "Chinese, English and eo"
