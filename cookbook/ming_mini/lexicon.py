"""Words and phrases for the sentences, from WordNet 3.0: tagged words, usage examples, definitions.

WordNet (Debian package `wordnet-base`) is free for any use. Its `cntlist.rev` counts how often a
sense occurs in running text, which separates everyday words from rare ones.
"""

import argparse
import json
import re
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

WORDNET = Path("/usr/share/wordnet")
# How many words of each kind are kept, most frequent first, by the digit of a sense key.
KEPT = {"1": 2500, "2": 900, "3": 900, "4": 300}
FILES = ("data.noun", "data.verb", "data.adj", "data.adv")

_SENSE = re.compile(r"^([a-z]{2,12})%([1-5]):\S+ \d+ (\d+)$", re.MULTILINE)
_EXAMPLE = re.compile(r'"([^"\n]+)"')
_PLAIN = re.compile(r"[A-Za-z][A-Za-z']*(?:,? [A-Za-z][A-Za-z']*){2,17}[.?!]?")
_ASIDE = re.compile(r"\([^)]*\) ?")
# A definition is kept if each of its words occurs this often in the usage examples.
EVERYDAY = 4
MIN_DEFINITION_WORDS = 4


@dataclass(frozen=True)
class Lexicon:
    """Everyday words by kind, the most frequent first.

    It also has example phrases, and definitions in everyday words.
    """

    nouns: tuple[str, ...]
    verbs: tuple[str, ...]
    adjectives: tuple[str, ...]
    adverbs: tuple[str, ...]
    phrases: tuple[str, ...]
    definitions: tuple[str, ...] = ()


def read_lexicon(path: Path = WORDNET) -> Lexicon:
    """Read WordNet's folder, or the JSON file that `python -m ...lexicon` made of it."""
    if path.is_dir():
        return _from_wordnet(path)
    return Lexicon(**{kind: tuple(words) for kind, words in json.loads(path.read_text()).items()})


def _from_wordnet(folder: Path) -> Lexicon:
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KEPT}
    for word, kind, count in _SENSE.findall((folder / "cntlist.rev").read_text()):
        # Kind 5 is a satellite adjective.
        counts["3" if kind == "5" else kind][word] += int(count)
    chosen = {kind: _frequent(counter, KEPT[kind]) for kind, counter in counts.items()}
    phrases = _phrases(folder)
    words = chosen["1"], chosen["2"], chosen["3"], chosen["4"]
    return Lexicon(*words, phrases, _definitions(folder, phrases))


def _frequent(counter: Counter[str], count: int) -> tuple[str, ...]:
    return tuple(sorted(counter, key=lambda word: (-counter[word], word))[:count])


def _phrases(folder: Path) -> tuple[str, ...]:
    """Return every usage example of plain words and ordinary length, sorted."""
    found = set()
    for file in FILES:
        for phrase in _EXAMPLE.findall((folder / file).read_text(encoding="utf-8")):
            if _PLAIN.fullmatch(phrase.strip()):
                found.add(phrase.strip())
    return tuple(sorted(found))


def _definitions(folder: Path, phrases: tuple[str, ...]) -> tuple[str, ...]:
    """Return every definition, or part of one, in plain everyday words, sorted."""
    met = Counter(word for phrase in phrases for word in _words(phrase))
    found = set()
    for file in FILES:
        for line in (folder / file).read_text(encoding="utf-8").splitlines():
            gloss = line.partition(" | ")[2].partition('"')[0]
            for part in _ASIDE.sub("", gloss).split(";"):
                text = part.strip()
                words = _words(text)
                if len(words) < MIN_DEFINITION_WORDS or not _PLAIN.fullmatch(text):
                    continue
                if all(met[word] >= EVERYDAY for word in words):
                    found.add(text)
    return tuple(sorted(found))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def main() -> None:
    """Write the lexicon as one JSON file, for machines without WordNet."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--wordnet", type=Path, default=WORDNET)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    args.output.write_text(json.dumps(asdict(read_lexicon(args.wordnet))))


if __name__ == "__main__":
    main()
