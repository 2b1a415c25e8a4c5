"""The texts to say: spoken questions with their answers, and sentences to write down.

    python -m cookbook.ming_mini_2.thinker.spoken_texts --output FILE --count 20000 --lexicon FILE

Whoever makes clips says these texts; `clip_folder` finds the answer of a clip by its text. A line
of the file is a JSON object: `text`, and for a question the fields of its answer. The file also has
what no held-out text is drawn for. Rows of the dictionary's rarer words: of 55 sentences in natural
voices the model misheard 26 % of the words, nearly all in words that it had hardly ever heard. And
more comparisons, yes-or-no questions and letters: it answered 27 of 150 questions in writing, with
numbers in words, wrongly, and 26 of them were such.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from cookbook.ming_mini.lexicon import WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini.sentences import punctuate
from cookbook.ming_mini.thinker import choices, speech_tasks, text_tasks
from cookbook.ming_mini.thinker.items import Check, Item
from cookbook.ming_mini.thinker.speech_tasks import LONGEST_WORDS, spoken_form
from cookbook.ming_mini_2.thinker import chatter, dialogs, facts, persona, sums, topics
from cookbook.ming_mini_2.thinker.excluded import Excluded, read_excluded

Maker = Callable[[Random, Lexicon], Item]
QUESTION_SHARE = 0.5
VOCABULARY_SHARE = 0.2
"""Of the texts to train on, rows of rarer words."""
WEAK_SHARE = 0.15
"""Of the texts to train on, further questions of `WEAK`."""
LEAST_LETTERS, MOST_IN_ROW = 4, 4
"""Of a rare word, and of a row of them."""
SPOKEN: Mapping[Maker, float] = {
    sums.sum_in_words: 4.0,
    sums.sum_in_figures: 2.0,
    sums.story: 2.0,
    persona.persona: 2.0,
    persona.greeting: 1.5,
    persona.refusal: 1.0,
    topics.topic: 2.0,
    chatter.chatter: 1.0,
    facts.known_fact: 2.0,
    choices.fact: 2.0,
    choices.explained_yes_no: 1.0,
    text_tasks.explained_comparison: 1.0,
    text_tasks.spell: 1.0,
    dialogs.unknown: 0.3,
}
"""Text tasks that are also spoken, and their relative frequencies."""
WEAK: Mapping[Maker, float] = {
    text_tasks.explained_comparison: 2.0,
    choices.explained_yes_no: 2.0,
    text_tasks.spell: 1.0,
}
"""Those that are answered worst, and their frequencies among further questions."""


@dataclass(frozen=True)
class SpokenText:
    """A text to say. For a question, `answer` with its rule; empty for a sentence."""

    text: str
    answer: str = ""
    check: Check = "exact"
    accept: tuple[str, ...] = ()
    about: str = ""
    fixed: bool = False

    def question(self) -> Item:
        """Return the item that answers the question."""
        return Item(
            "spoken_question", "", self.answer, self.check, self.accept, None, self.text,
            about=self.about, fixed=self.fixed,
        )  # fmt: skip


def spoken_texts(seed: int, lexicon: Lexicon, excluded: Excluded) -> Iterator[SpokenText]:
    """Yield texts to say, without end and with repetitions."""
    rng = Random(f"spoken texts {seed}")
    while True:
        if rng.random() < QUESTION_SHARE:
            found = _question(SPOKEN, rng, lexicon)
        else:
            found = SpokenText(speech_tasks.sentence(rng, lexicon))
        if _is_allowed(found, excluded):
            yield found


def _question(makers: Mapping[Maker, float], rng: Random, lexicon: Lexicon) -> SpokenText:
    maker = rng.choices(tuple(makers), tuple(makers.values()))[0]
    return said_aloud(maker(rng, lexicon))


def _is_allowed(text: SpokenText, excluded: Excluded) -> bool:
    item = replace(text.question(), question=text.text)
    return _can_be_said(text.text) and item not in excluded


def training_texts(seed: int, lexicon: Lexicon, excluded: Excluded) -> Iterator[SpokenText]:
    """Yield texts to say in clips to train on.

    They are those of `spoken_texts`, rows of rare words, and more of the questions that are
    answered worst.
    """
    rng, pool = Random(f"vocabulary {seed}"), rare_words(lexicon)
    plain = 1 - VOCABULARY_SHARE - WEAK_SHARE
    for text in spoken_texts(seed, lexicon, excluded):
        found = [text]
        if pool and rng.random() < VOCABULARY_SHARE / plain:
            found.append(SpokenText(_word_row(rng, pool)))
        if rng.random() < WEAK_SHARE / plain:
            found.append(_question(WEAK, rng, lexicon))
        yield from (one for one in found if _is_allowed(one, excluded))


def rare_words(lexicon: Lexicon) -> tuple[str, ...]:
    """Return the words of the dictionary's examples that are not among its everyday words."""
    everyday = {*lexicon.nouns, *lexicon.verbs, *lexicon.adjectives, *lexicon.adverbs}
    said = {word for phrase in lexicon.phrases for word in re.findall(r"[a-z]+", phrase.lower())}
    return tuple(sorted(word for word in said - everyday if len(word) >= LEAST_LETTERS))


def _word_row(rng: Random, pool: Sequence[str]) -> str:
    chosen = [rng.choice(pool) for _ in range(rng.randint(1, MOST_IN_ROW))]
    return punctuate(rng.choice((" ", ", ", " and ", " of the ")).join(chosen))


def said_aloud(item: Item) -> SpokenText:
    """Return the question of an item as it is said: numbers and signs in words."""
    text = spoken_form(re.sub(r"(?<=\d)( ?)[x\u00d7]\1(?=\d)", r"\1*\1", item.question))
    about = item.about or ("" if item.fixed else text)
    return SpokenText(text, item.answer, item.check, item.accept, about, item.fixed)


def _can_be_said(text: str) -> bool:
    """Return whether a text is of letters, and not too long."""
    said = text.replace("'", "").replace("-", "").replace(" ", "").strip(".,?!:")
    plain = all(char.isalpha() or char in ".,?!:" for char in said)
    return plain and said.isascii() and len(text.split()) <= LONGEST_WORDS + 8


def write_texts(path: Path, texts: Iterator[SpokenText], count: int) -> int:
    """Write `count` draws of texts, each text once. Returns the number of lines."""
    found = {one.text: one for one in islice(texts, count)}
    lines = [json.dumps(vars(one), ensure_ascii=False) for one in found.values()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


def read_texts(path: Path) -> dict[str, SpokenText]:
    """Return the texts of a file by their words. Raises `FileNotFoundError`."""
    lines = path.read_text("utf-8").splitlines()
    return {one.text: one for one in map(_parse, map(json.loads, lines))}


def _parse(fields: Mapping[str, Any]) -> SpokenText:
    return SpokenText(**{**fields, "accept": tuple(fields.get("accept", ()))})


def main() -> None:
    """Write the texts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    args = parser.parse_args()
    stream = training_texts(args.seed, read_lexicon(args.lexicon), read_excluded())
    print(f"wrote {write_texts(args.output, stream, args.count)} texts to {args.output}")


if __name__ == "__main__":
    main()
