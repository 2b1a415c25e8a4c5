"""Tasks that are judged by their speech.

They are seed-tts (read a text aloud), and speech in, speech out.
"""

from collections.abc import Sequence
from typing import Literal

from benchmarks.client.target import ChatRequest, MediaPart, SpeechRequest, TextPart
from benchmarks.evaluation.datasets import bundled
from benchmarks.evaluation.datasets.source import Dataset, Row
from benchmarks.evaluation.tasks.task import Sample, Task, Verdict

Language = Literal["en", "zh"]
_COLUMNS = ("utt", "prompt_text", "prompt_wav", "infer_text")
SEED_TTS = {
    "en": Dataset(
        "seed-tts-eval",
        "en",
        "test",
        _COLUMNS,
        bundled.seed_tts_en,
        ("prompt_wav",),
        listed=True,
    ),
    "zh": Dataset(
        "seed-tts-eval",
        "zh",
        "test",
        _COLUMNS,
        bundled.seed_tts_zh,
        ("prompt_wav",),
        listed=True,
    ),
}
SPOKEN = Dataset(
    "spoken-questions",
    None,
    "test",
    ("id", "audio", "question", "answers"),
    bundled.spoken,
    ("audio",),
)
_READ = {
    "en": "Read the following text aloud, exactly as it is, and say nothing else.",
    "zh": "请逐字朗读下面的文字，不要说别的内容。",
}


def _recited(rows: Sequence[Row], cloned: bool) -> list[Sample]:
    samples = []
    for index, row in enumerate(rows):
        like = {"reference": row["prompt_wav"]["bytes"], "said": row["prompt_text"]}
        recite = SpeechRequest(row["infer_text"], seed=index, **(like if cloned else {}))
        samples.append(Sample(row["utt"], recite, words=row["infer_text"]))
    return samples


def _chatted(rows: Sequence[Row], language: Language) -> list[Sample]:
    samples = []
    for index, row in enumerate(rows):
        text = f"{_READ[language]}\n\n{row['infer_text']}"
        ask = ChatRequest((TextPart(text),), max_tokens=256, speech=True, seed=index)
        samples.append(Sample(row["utt"], ask, words=row["infer_text"]))
    return samples


def _spoken(rows: Sequence[Row]) -> list[Sample]:
    samples = []
    for index, row in enumerate(rows):
        clip = MediaPart("audio", row["audio"]["bytes"], "wav")
        ask = ChatRequest((clip,), max_tokens=256, speech=True, seed=index)
        samples.append(Sample(row["id"], ask, {"answers": row["answers"]}))
    return samples


def judge_contains(sample: Sample, answer: str) -> Verdict:
    """Judge as right if the answer contains one of the right answers.

    It must be there as whole words, whatever the case.
    """
    said = f" {' '.join(''.join(c if c.isalnum() else ' ' for c in answer.lower()).split())} "
    found = [one for one in sample.truth["answers"] if f" {one.lower()} " in said]
    return Verdict(bool(found), found[0] if found else None, "parsed" if found else "none")


def _seed_tts(language: Language) -> list[Task]:
    dataset, name = SEED_TTS[language], f"seed-tts-{language}"
    return [
        Task(name, "speech", dataset, lambda rows: _recited(rows, False), language=language),
        Task(name, "speech-cloned", dataset, lambda rows: _recited(rows, True), language=language),
        Task(name, "chat", dataset, lambda rows: _chatted(rows, language), language=language),
    ]


TASKS = (
    *_seed_tts("en"),
    *_seed_tts("zh"),
    Task("speech-to-speech", "contains", SPOKEN, _spoken, judge_contains, language="en"),
)
