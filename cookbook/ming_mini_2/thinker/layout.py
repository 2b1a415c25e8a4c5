"""The top folder of the checkpoint without its weights: configuration and tokenizer.

    python -m cookbook.ming_mini_2.thinker.layout --output DIR

The tokenizer keeps the words of the packed checkpoint, whose weights a training begins with, and
adds those that save most tokens in the tasks' prompts and answers.
"""

import argparse
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from tokenizers import Tokenizer, decoders

from cookbook.ming_mini.lexicon import WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.layout import SAMPLED, write_layout
from cookbook.ming_mini.thinker.tasks import Kind
from cookbook.ming_mini.thinker.tokenizer import build_tokenizer, frequent_words
from cookbook.ming_mini_2.thinker.configs import SIZES, WORDS
from cookbook.ming_mini_2.thinker.dialog import DialogItem, answer_segments, messages_of
from cookbook.ming_mini_2.thinker.excluded import Excluded, read_excluded
from cookbook.ming_mini_2.thinker.prompts import ROUTE_PROMPTS
from cookbook.ming_mini_2.thinker.spoken_texts import spoken_texts
from cookbook.ming_mini_2.thinker.tasks import groups
from sglang_omni.models.ming.prompt.chat import render_chat
from sglang_omni.models.ming.prompt.segments import PromptSegment

BYTES = 256
COUNTED: Mapping[Kind, int] = {"text": 3, "picture": 1, "film": 1}
"""The kinds whose words are counted, and how many groups of each for one of a picture."""


def learn_words(
    lexicon: Lexicon, excluded: Excluded, seed: int = 0, sampled: int = SAMPLED
) -> list[str]:
    """Return the words that save most tokens in prompts and answers, as the server renders them."""
    return frequent_words(_texts(lexicon, excluded, seed, sampled), WORDS)


def _texts(lexicon: Lexicon, excluded: Excluded, seed: int, sampled: int) -> Iterator[str]:
    for kind, share in COUNTED.items():
        stream = groups(kind, f"words {seed}", lexicon, "train", excluded)
        for items in islice(stream, sampled * share):
            for item in items:
                yield from _texts_of(item)
    for text in islice(spoken_texts(seed, lexicon, excluded), sampled):
        yield from (text.text, text.answer, *ROUTE_PROMPTS)


def _texts_of(item: Item) -> Iterator[str]:
    tools, thinking = (item.tools, item.thinking) if isinstance(item, DialogItem) else ((), False)
    prompt = render_chat(messages_of(item), thinking, tools)
    segments: list[PromptSegment] = [*prompt.segments, *answer_segments(item)]
    yield from (segment for segment in segments if isinstance(segment, str))


def packed_words(checkpoint: Path) -> list[str]:
    """Return the whole words of a packed checkpoint's tokenizer, in the order of their ids."""
    model = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    vocabulary = model.get_vocab(with_added_tokens=False)
    decode = decoders.ByteLevel()
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)[BYTES:]
    return [decode.decode([piece]) for piece in pieces]


def extend_words(first: list[str], more: list[str], count: int = WORDS) -> list[str]:
    """Return `first`, then words of `more` up to `count`, each once."""
    return list(dict.fromkeys((*first, *more)))[:count]


def main() -> None:
    """Write the layout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="a packed checkpoint whose words are kept")
    parser.add_argument("--sizes", choices=tuple(SIZES), default="mini_2")
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    parser.add_argument("--sampled", type=int, default=SAMPLED, help="groups of items to count in")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    found = learn_words(read_lexicon(args.lexicon), read_excluded(), args.seed, args.sampled)
    kept = packed_words(args.start) if args.start else []
    tokenizer = build_tokenizer(extend_words(kept, found))
    write_layout(args.output, tokenizer, SIZES[args.sizes])
    print(f"wrote {args.output}: {tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
