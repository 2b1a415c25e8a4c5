"""Chats to calibrate with are token for token what is trained on."""

import json
from itertools import islice
from pathlib import Path

from cookbook.ming_mini_2.thinker.calibration_chats import draw_chats, whole_chat
from cookbook.ming_mini_2.thinker.dialog import DialogItem, example_of
from cookbook.ming_mini_2.thinker.excluded import Excluded
from cookbook.ming_mini_2.thinker.tasks import groups
from sglang_omni.entrypoints.cli.calibration_file import read_chats
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.thinker.int4.calibration import list_prompts
from tests.cookbook.thinker.conftest import LEXICON

COUNT = 300


def test_chats_are_token_for_token_what_is_trained_on(
    tmp_path: Path, tokenizer: ThinkerTokenizer, excluded: Excluded
) -> None:
    drawn = groups("text", "calibration", LEXICON, "train", excluded)
    # The template writes several calls of an earlier turn without the line breaks between them.
    items = [item for (item,) in islice(drawn, COUNT) if len(getattr(item, "calls", ())) < 2]
    assert any(isinstance(item, DialogItem) and item.calls for item in items)
    assert any(isinstance(item, DialogItem) and item.thinking for item in items)
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(whole_chat(item)) + "\n" for item in items))
    prompts = list_prompts(tokenizer, read_chats(path))
    for item, prompt in zip(items, prompts, strict=True):
        assert tuple(prompt) == example_of(tokenizer, item).ids, item


def test_no_chat_is_of_another_split(excluded: Excluded) -> None:
    questions = {
        split: {str(chat["messages"][-2]) for chat in draw_chats(60, 1, LEXICON, excluded, split)}
        for split in ("train", "held_out")
    }
    assert questions["train"] != questions["held_out"]
    assert draw_chats(3, 1, LEXICON, excluded) == draw_chats(3, 1, LEXICON, excluded)
