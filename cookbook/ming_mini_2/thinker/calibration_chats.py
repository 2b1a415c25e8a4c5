"""Write chats of the training to calibrate four bits with.

    python -m cookbook.ming_mini_2.thinker.calibration_chats --output FILE --count 400
    sgl-omni quantize SRC DST --int4 --calibration FILE

A line is the request of a text item with its answer. Items are those of the training, so that
measurements on held-out items stay fair; `--split held_out` writes such, to measure with.
"""

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import get_args

from cookbook.ming_mini.lexicon import WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini.thinker.items import Item, Split
from cookbook.ming_mini_2.thinker.dialog import DialogItem
from cookbook.ming_mini_2.thinker.evaluation.ask import Json, chat_body
from cookbook.ming_mini_2.thinker.excluded import Excluded, read_excluded
from cookbook.ming_mini_2.thinker.tasks import groups
from sglang_omni.models.reasoning import CLOSE, OPEN

KEYS = ("messages", "tools", "chat_template_kwargs")
"""What of a request is part of the prompt."""


def whole_chat(item: Item) -> Json:
    """Return the request of an item of text, with its answer as the last message."""
    body = chat_body(item)
    chat = {key: body[key] for key in KEYS if key in body}
    return chat | {"messages": [*body["messages"], _answer(item)]}


def _answer(item: Item) -> Json:
    if not isinstance(item, DialogItem):
        return {"role": "assistant", "content": item.answer}
    thought = f"{OPEN}\n{item.thought}\n{CLOSE}\n\n" if item.thinking else ""
    message: Json = {"role": "assistant", "content": thought + item.answer or None}
    calls = [
        {
            "id": f"answer_{place}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for place, call in enumerate(item.calls)
    ]
    return message | ({"tool_calls": calls} if calls else {})


def draw_chats(
    count: int, seed: int, lexicon: Lexicon, excluded: Excluded, split: Split = "train"
) -> list[Json]:
    """Draw chats of the text tasks."""
    drawn = groups("text", f"calibration {seed}", lexicon, split, excluded)
    return [whole_chat(items[0]) for items in islice(drawn, count)]


def main() -> None:
    """Write the chats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--split", choices=get_args(Split), default="train")
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    args = parser.parse_args()
    lexicon, excluded = read_lexicon(args.lexicon), read_excluded()
    chats = draw_chats(args.count, args.seed, lexicon, excluded, args.split)
    lines = (f"{json.dumps(chat, ensure_ascii=False)}\n" for chat in chats)
    args.output.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
