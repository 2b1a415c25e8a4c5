"""The frequent words of English, and texts in which a talker learns to pronounce them.

    python -m cookbook.ming_mini_2.voices.vocabulary --output FILE

A talker that reads letters says the words that it was trained on: of 60 everyday sentences it said
40 % of the words wrong that no text of its training had, and 7 % of its most frequent ones. WordNet
has hardly any names and inflections ("awesome", "Barcelona", "bragging" were never said), so the
words come from the frequency list of the package `wordfreq` (data under CC BY-SA 4.0). FILE is for
a machine that has no package registry.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

PRONOUNCED = re.compile(r"(?=.*[aeiouy])[a-z]{3,}(?:'[a-z]{1,2})?")
"""What is kept of the list: words of letters that are not abbreviations, perhaps with an ending."""
WORDS = 18_000
"""How many of the list are kept: its other 10,000 are 2 % of what people say."""
FREQUENT, FREQUENT_SHARE = 6000, 0.6
"""So many of the words are drawn with this probability, and otherwise any."""
CAPITAL_SHARE = 0.2
"""The list has names in lower case, and so every word has a capital letter sometimes."""
MOST_IN_ROW = 8
ROW_SHARE = 0.55
CARRIERS = (
    "what does {} mean?", "how do you say {}?", "have you heard of {}?", "I've never heard of {}",
    "she said {}, not {}", "is it {} or {}?", "{} is better than {}", "it's all about {} and {}",
    "we talked about {} and {}", "I'm not sure that {} is the same as {}", "don't say {} to {}",
    "you're looking for {}, aren't you?", "the word {} comes before {}", "that's what {} is for",
    "they don't like {}, but {} is fine", "if {} isn't there, take {}", "so {} was {}",
    "he's been to {} with {}", "there's a {} in the {}", "my {} isn't as {} as yours",
    "we'll need {}, {} and {}", "I'd rather have {} than {}", "who's {}?", "it's {}, of course",
    "you've got {} on your {}", "we've seen {} before", "they've had {} since {}", "where's {}?",
    "you'd better ask {}", "it'll be {} by then", "haven't you got {}?", "I wasn't {}, just {}",
    "I'll bring {} and {}", "you'll find {} in {}", "she'll be {} soon", "they'll {} tomorrow",
)  # fmt: skip


def read_vocabulary(path: Path | None = None) -> tuple[str, ...]:
    """Return frequent words, the most frequent first: of a file, a word a line, or of `wordfreq`.

    Raises:
        ModuleNotFoundError: There is no path, and `wordfreq` is not installed.
    """
    if path is not None:
        return tuple(path.read_text(encoding="utf-8").split())
    from wordfreq import top_n_list

    listed = top_n_list("en", 2 * WORDS, wordlist="small")
    return tuple(filter(PRONOUNCED.fullmatch, listed))[:WORDS]


def draw_vocabulary(rng: Random, words: Sequence[str]) -> str:
    """Draw frequent words in a row, or a sentence of any meaning that has some."""
    if rng.random() < ROW_SHARE:
        row = [_word(rng, words) for _ in range(rng.randint(1, MOST_IN_ROW))]
        return rng.choice((" ", ", ", ", ")).join(row)
    carrier = rng.choice(CARRIERS)
    return carrier.format(*(_word(rng, words) for _ in range(carrier.count("{}"))))


def _word(rng: Random, words: Sequence[str]) -> str:
    word = rng.choice(words[:FREQUENT] if rng.random() < FREQUENT_SHARE else words)
    return word.capitalize() if rng.random() < CAPITAL_SHARE else word


def main() -> None:
    """Write the words of `wordfreq` to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    words = read_vocabulary()
    args.output.write_text("\n".join(words) + "\n", encoding="utf-8")
    print(f"wrote {len(words)} words to {args.output}")


if __name__ == "__main__":
    main()
