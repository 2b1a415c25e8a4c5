"""MMLU, MMSU and Video-MME: four choices about a text, a clip and a video."""

from collections.abc import Sequence

from benchmarks.client.target import ChatRequest, MediaPart, TextPart
from benchmarks.evaluation.datasets import bundled
from benchmarks.evaluation.datasets.source import Dataset, Row
from benchmarks.evaluation.tasks import choices
from benchmarks.evaluation.tasks.task import Sample, Task, Verdict

MMLU = Dataset(
    "cais/mmlu", "all", "test", ("question", "subject", "choices", "answer"), bundled.mmlu
)
MMSU = Dataset(
    "ngqtrung/mmsu",
    None,
    "test",
    ("audio", "question", "choice_a", "choice_b", "choice_c", "choice_d", "answer", "task_name"),
    bundled.mmsu,
    ("audio",),
)
VIDEO_MME = Dataset(
    "lmms-eval/Video-MME",
    None,
    "test",
    ("videoID", "question_id", "question", "options", "answer", "task_type"),
    bundled.video_mme,
    ("video",),
    beside="video",
)


def _mmlu(rows: Sequence[Row], most: int, stop: tuple[str, ...], tail: str) -> list[Sample]:
    samples = []
    for index, row in enumerate(rows):
        text = f"{row['question'].strip()}\n{choices.format_options(row['choices'])}\n{tail}"
        truth = {"answer": "ABCD"[row["answer"]], "options": row["choices"]}
        ask = ChatRequest((TextPart(text),), max_tokens=most, stop=stop)
        samples.append(Sample(f"{index:05}", ask, truth, row["subject"]))
    return samples


def _mmsu(rows: Sequence[Row], speech: bool) -> list[Sample]:
    samples = []
    for index, row in enumerate(rows):
        options = [row[f"choice_{letter}"] for letter in "abcd"]
        text = (
            "Listen to the audio and answer the following question.\n\n"
            f"Question: {row['question']}\n\n{choices.format_options(options)}\n\n"
            "Answer with the letter (A, B, C, or D) only."
        )
        clip = MediaPart("audio", row["audio"]["bytes"], "wav")
        truth = {"answer": row["answer"], "options": options}
        ask = ChatRequest((clip, TextPart(text)), max_tokens=256, speech=speech)
        samples.append(Sample(str(row.get("id", index)), ask, truth, row["task_name"]))
    return samples


def _video_mme(rows: Sequence[Row]) -> list[Sample]:
    samples = []
    for row in rows:
        text = (
            "Select the best answer to the following multiple-choice question based on the video "
            "and the subtitles. Respond with only the letter (A, B, C, or D) of the correct option."
            "\n" + "\n".join([row["question"], *row["options"]]) + "\n"
            "\nAnswer with the option's letter from the given choices directly."
        )
        video = MediaPart("video", row["video"]["bytes"], "mp4")
        truth = {"answer": row["answer"], "options": row["options"]}
        ask = ChatRequest((video, TextPart(text)), max_tokens=16)
        samples.append(Sample(row["question_id"], ask, truth, row["task_type"]))
    return samples


def judge_first_line(sample: Sample, answer: str) -> Verdict:
    """Judge like lm-eval's mmlu_generative: the first line must be the letter."""
    letter = choices.first_line(answer, sample.truth["options"])
    return choices.or_wrong(letter, sample.truth["answer"])


def judge_lmms_eval(sample: Sample, answer: str) -> Verdict:
    """Judge like lmms-eval's mmsu, with its MMMU parser; without a letter, a random one."""
    letter = choices.lmms_letter(answer, sample.truth["options"])
    return choices.or_guess(letter, sample.truth["answer"], 4, sample.id)


def judge_surest(sample: Sample, answer: str) -> Verdict:
    """Judge like lmms-eval's videomme: the letter in the surest form, or wrong."""
    letter = choices.surest_letter(answer, sample.truth["options"])
    return choices.or_wrong(letter, sample.truth["answer"])


def judge_answer_line(sample: Sample, answer: str) -> Verdict:
    """Judge by the last "Answer: X", or else by MMMU's parser; no letter is wrong."""
    letter = choices.answer_line(answer, sample.truth["options"])
    return choices.or_wrong(letter, sample.truth["answer"])


_THINK = "\nThink step by step, and end with the line 'Answer: X', where X is the letter."

TASKS = (
    Task(
        "mmlu",
        "lm-eval-generative-0-shot",
        MMLU,
        # lm-eval stops at the first line.
        lambda rows: _mmlu(rows, 16, ("</s>", "\n"), "Answer:"),
        judge_first_line,
    ),
    Task(
        "mmlu", "chat-0-shot", MMLU, lambda rows: _mmlu(rows, 1024, (), _THINK), judge_answer_line
    ),
    Task("mmsu", "lmms-eval", MMSU, lambda rows: _mmsu(rows, speech=False), judge_lmms_eval),
    Task(
        "mmsu",
        "lmms-eval-spoken",
        MMSU,
        lambda rows: _mmsu(rows, speech=True),
        judge_lmms_eval,
        language="en",
    ),
    Task("videomme", "lmms-eval", VIDEO_MME, _video_mme, judge_surest),
)
