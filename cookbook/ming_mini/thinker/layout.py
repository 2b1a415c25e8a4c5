"""The checkpoint's top folder without its weights: configuration and tokenizer.

`python -m cookbook.ming_mini.thinker.layout --output DIR` writes it; makers, training and packing
read their sizes and tokens from it.
"""

import argparse
from itertools import islice
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from cookbook.ming_mini.lexicon import WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini.thinker.configs import MINI, SIZES, Sizes, main_config
from cookbook.ming_mini.thinker.tasks import KINDS, groups
from cookbook.ming_mini.thinker.tokenizer import build_tokenizer, frequent_words
from sglang_omni.models.ming.tiny import configs as tiny
from sglang_omni.models.ming.tiny.files import write_json

SAMPLED = 8000
"""The number of item groups of each kind whose words are counted."""


def learn_tokenizer(lexicon: Lexicon, seed: int = 0, sampled: int = SAMPLED) -> Tokenizer:
    """Build the tokenizer whose whole words follow from the tasks."""
    texts = [
        text
        for kind in KINDS
        for items in islice(groups(kind, f"words {seed}", lexicon, "train"), sampled)
        for item in items
        for text in (item.question, item.answer)
    ]
    return build_tokenizer(frequent_words(texts))


def write_layout(folder: Path, tokenizer: Tokenizer, sizes: Sizes = MINI) -> None:
    """Write every JSON file of the top folder."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, Any] = {
        "config.json": main_config(tokenizer, sizes),
        "preprocessor_config.json": tiny.build_preprocessor_config(),
        "tokenizer_config.json": tiny.build_thinker_tokenizer_config(tokenizer),
        "special_tokens_map.json": tiny.THINKER_SPECIAL_TOKENS,
    }
    for name, value in files.items():
        write_json(folder / name, value)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")


LAYOUT = (
    *("config.json", "preprocessor_config.json", "tokenizer.json"),
    *("tokenizer_config.json", "special_tokens_map.json"),
)
"""The files that `write_layout` writes."""


def main() -> None:
    """Write the layout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--sizes", choices=tuple(SIZES), default="mini")
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    tokenizer = learn_tokenizer(read_lexicon(args.lexicon), args.seed)
    write_layout(args.output, tokenizer, SIZES[args.sizes])
    print(f"wrote {args.output}: {tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
