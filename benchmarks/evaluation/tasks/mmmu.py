"""MMMU: questions about pictures in thirty subjects; the validation split has 900."""

import ast
import re
from collections.abc import Callable, Sequence

from benchmarks.client.target import ChatRequest, MediaPart, Part, TextPart
from benchmarks.evaluation.datasets import bundled
from benchmarks.evaluation.datasets.source import Dataset, Row
from benchmarks.evaluation.tasks import choices, open_answers
from benchmarks.evaluation.tasks.task import Sample, Task, Verdict

LetterOf = Callable[[str, Sequence[str]], str | None]
_IMAGES = tuple(f"image_{number}" for number in range(1, 8))
VALIDATION = Dataset(
    "lmms-lab/MMMU",
    None,
    "validation",
    ("id", "question", "options", "answer", "question_type", *_IMAGES),
    bundled.mmmu,
    _IMAGES,
)
# SGLang skips larger pictures.
MAX_PIXELS = 4_300_000
_LETTER = "Answer with the option's letter from the given choices directly."
_PHRASE = "Answer the question using a single word or phrase."
_COT_LETTER = (
    "Answer the following multiple-choice question. The last line of your response should be of "
    "the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of the options. "
    "Think step by step before answering."
)
_COT_OPEN = (
    "Answer the following question. The last line of your response should be of the following "
    "format: 'Answer: $ANSWER' (without quotes) where ANSWER is your answer. "
    "Think step by step before answering."
)


def read_options(row: Row) -> list[str]:
    """Return the choices, which the data set stores as the text of a Python list."""
    options: list[str] = ast.literal_eval(row["options"])
    return options


def read_pictures(row: Row) -> list[tuple[str, bytes]]:
    """Return tag and file of the pictures that question and options name.

    They are in the order of their numbers.
    """
    named = re.findall(r"<image (\d)>", row["question"] + row["options"])
    found = [(f"<image {n}>", row[f"image_{n}"]) for n in sorted(set(named))]
    return [(tag, medium["bytes"]) for tag, medium in found if medium]


def _small_enough(row: Row) -> bool:
    import io

    from PIL import Image

    sizes = [Image.open(io.BytesIO(data)).size for _, data in read_pictures(row)]
    return all(width * height < MAX_PIXELS for width, height in sizes)


def _is_choice(row: Row) -> bool:
    return bool(row["question_type"] == "multiple-choice")


def _like_sglang(row: Row) -> ChatRequest:
    """Build a request with options as "(A) text", and the picture in the place of its tag."""
    if _is_choice(row):
        lines = choices.format_options(read_options(row), "({}) {}")
        text = f"{row['question']}\n{lines}\n{_LETTER}"
    else:
        text = f"{row['question']}\n{_PHRASE}"
    return ChatRequest(_interleaved(text, row), max_tokens=30, temperature=0.001)


def _like_lmms_eval(row: Row) -> ChatRequest:
    """Build a request with the pictures before the text, which keeps its tags."""
    if _is_choice(row):
        text = f"{row['question']}\n{choices.format_options(read_options(row))}\n\n{_LETTER}"
    else:
        text = f"{row['question']}\n\n{_PHRASE}"
    return ChatRequest((*_media(row), TextPart(text)), max_tokens=128)


def _like_sglang_omni(row: Row) -> ChatRequest:
    """Build a request that asks for step-by-step reasoning.

    The pictures come before the text, which has no tags.
    """
    question = re.sub(r"\s*<image \d>\s*", " ", row["question"]).strip()
    if _is_choice(row):
        lines = choices.format_options(
            [re.sub(r"<image \d>", "", one) for one in read_options(row)]
        )
        text = f"{question}\n\n{lines}\n\n{_COT_LETTER}"
    else:
        text = f"{question}\n\n{_COT_OPEN}"
    return ChatRequest((*_media(row), TextPart(text)), max_tokens=2048)


def _like_run_eval(row: Row) -> ChatRequest:
    """Build a request with the first picture alone in the place of the first tag.

    Open questions end in "Answer: ".
    """
    text = f"{row['question']}\n"
    if _is_choice(row):
        text += choices.format_options(read_options(row)) + f"\n\n{_COT_LETTER}"
    else:
        text += "\nAnswer: "
    before, tag, rest = text.partition("<")
    picture = MediaPart("image", read_pictures(row)[0][1], "png")
    after = rest.partition(">")[2] if tag else ""
    parts = (TextPart(before), picture, TextPart(after))
    return ChatRequest(
        tuple(p for p in parts if isinstance(p, MediaPart) or p.text), max_tokens=2048
    )


def _media(row: Row) -> list[Part]:
    return [MediaPart("image", data, "png") for _, data in read_pictures(row)]


def _interleaved(text: str, row: Row) -> tuple[Part, ...]:
    files = dict(read_pictures(row))
    parts: list[Part] = []
    for piece in re.split(r"(<image \d>)", text):
        if piece in files:
            parts.append(MediaPart("image", files[piece], "png"))
        elif piece.strip():
            parts.append(TextPart(piece))
    return tuple(parts)


def _samples(rows: Sequence[Row], ask: object) -> list[Sample]:
    """Return the samples with a picture, sorted by id.

    Larger pictures are skipped, as SGLang does.
    """
    assert callable(ask)
    kept = [row for row in sorted(rows, key=lambda row: row["id"]) if read_pictures(row)]
    if ask is _like_sglang:
        kept = [row for row in kept if _small_enough(row)]
    return [Sample(row["id"], ask(row), _truth(row), _subject(row["id"])) for row in kept]


def _truth(row: Row) -> dict[str, object]:
    kind = {"open": not _is_choice(row), "options": read_options(row)}
    return {"answer": row["answer"], **kind}


def _subject(name: str) -> str:
    """Return the subject: "Art_Theory" of "validation_Art_Theory_7"."""
    return "_".join(name.split("_")[1:-1])


def _open(sample: Sample, answer: str) -> Verdict:
    said = open_answers.parse_open_answer(answer)
    return Verdict(open_answers.matches_truth(said, _answers(sample)), repr(said))


def _answers(sample: Sample) -> str | list[str]:
    """Return the right answers: several where the data set has the text of a list."""
    answer = str(sample.truth["answer"])
    return list(ast.literal_eval(answer)) if answer.startswith("[") else answer


def judge_sglang(sample: Sample, answer: str) -> Verdict:
    """Judge with MMMU's own parsers; without a letter, a random one."""
    return _judge(sample, answer, choices.mmmu_letter)


def judge_lmms_eval(sample: Sample, answer: str) -> Verdict:
    """Judge with lmms-eval's parser for letters, and MMMU's for open questions.

    Without a letter, a random one is drawn.
    """
    return _judge(sample, answer, choices.lmms_letter)


def _judge(sample: Sample, answer: str, letter_of: LetterOf) -> Verdict:
    if sample.truth["open"]:
        return _open(sample, answer)
    options = sample.truth["options"]
    letter = letter_of(answer, options)
    return choices.or_guess(letter, sample.truth["answer"], len(options), sample.id)


def judge_run_eval(sample: Sample, answer: str) -> Verdict:
    """Judge like SGLang's `run_eval --eval-name mmmu`; without a letter, the first option."""
    if sample.truth["open"]:
        return _open(sample, answer)
    letter = choices.sglang_letter(answer, sample.truth["options"])
    return choices.or_first(letter, sample.truth["answer"])


def judge_answer_line(sample: Sample, answer: str) -> Verdict:
    """Judge by the last line "Answer: ...", or else by MMMU's parsers. No letter is wrong."""
    if not sample.truth["open"]:
        letter = choices.answer_line(answer, sample.truth["options"])
        return choices.or_wrong(letter, sample.truth["answer"])
    lines = re.findall(r"(?im)^\W*answer\s*:\s*(.+)$", answer)
    return _open(sample, lines[-1].strip("*$ ") if lines else answer)


TASKS = (
    Task("mmmu", "sglang", VALIDATION, lambda rows: _samples(rows, _like_sglang), judge_sglang),
    Task(
        "mmmu",
        "sglang-run-eval",
        VALIDATION,
        lambda rows: _samples(rows, _like_run_eval),
        judge_run_eval,
    ),
    Task(
        "mmmu",
        "lmms-eval",
        VALIDATION,
        lambda rows: _samples(rows, _like_lmms_eval),
        judge_lmms_eval,
    ),
    Task(
        "mmmu",
        "sglang-omni-cot",
        VALIDATION,
        lambda rows: _samples(rows, _like_sglang_omni),
        judge_answer_line,
    ),
)
