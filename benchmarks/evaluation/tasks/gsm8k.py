"""GSM8K: grade-school word problems, judged by the number at the end of an answer."""

from collections.abc import Callable, Sequence

from benchmarks.client.target import ChatRequest, TextPart
from benchmarks.evaluation.datasets import bundled
from benchmarks.evaluation.datasets.source import Dataset, Row
from benchmarks.evaluation.tasks import numbers
from benchmarks.evaluation.tasks.task import Sample, Task, Verdict

COLUMNS = ("question", "answer")
TEST = Dataset("openai/gsm8k", "main", "test", COLUMNS, bundled.gsm8k)
SHOTS = 5
TRAIN = Dataset("openai/gsm8k", "main", "train", COLUMNS, bundled.gsm8k_shots, take=SHOTS)

_STEP_BY_STEP = "{}\n\nThink step by step, and end with the line: The answer is N"
_LLAMA = (
    "Given the following problem, reason and give a final answer to the problem.\nProblem: {}\n"
    'Your response should end with "The final answer is [answer]" where [answer] is the response '
    "to the problem.\n"
)

Extract = Callable[[str], str | None]
Same = Callable[[str, str], bool]


def _judge(extract: Extract, same: Same, truth: Callable[[str], str]) -> Callable[..., Verdict]:
    def judge(sample: Sample, answer: str) -> Verdict:
        found = extract(answer)
        right = found is not None and same(found, truth(sample.truth))
        return Verdict(right, found, "none" if found is None else "parsed")

    return judge


def _digits_of_truth(answer: str) -> str:
    return numbers.last_digits(answer) or ""


def format_worked_example(row: Row, with_answer: bool) -> str:
    """Format a question as SGLang and lm-eval do, with its worked answer or without."""
    answer = f" {row['answer']}" if with_answer else ""
    return f"Question: {row['question']}\nAnswer:{answer}"


def _in_a_row(shots: Sequence[Row], rows: Sequence[Row], stop: tuple[str, ...]) -> list[Sample]:
    """Put each question after the same worked examples, all in one message."""
    head = "".join(format_worked_example(shot, True) + "\n\n" for shot in shots)
    return [
        _sample(
            index,
            row,
            ChatRequest(
                (TextPart(head + format_worked_example(row, False)),), max_tokens=512, stop=stop
            ),
        )
        for index, row in enumerate(rows)
    ]


def _plain(rows: Sequence[Row], form: str, most: int) -> list[Sample]:
    asks = (ChatRequest((TextPart(form.format(row["question"])),), max_tokens=most) for row in rows)
    return [_sample(index, *pair) for index, pair in enumerate(zip(rows, asks, strict=True))]


def _sample(index: int, row: Row, ask: ChatRequest) -> Sample:
    return Sample(f"{index:04}", ask, row["answer"])


def _like_sglang(rows: Sequence[Row]) -> list[Sample]:
    # The worked examples are the first rows of the test file, and are asked too, as in SGLang.
    return _in_a_row(rows[:SHOTS], rows, ("Question", "Assistant:", "<|separator|>"))


def _like_run_eval(rows: Sequence[Row]) -> list[Sample]:
    # The same examples, which are not asked.
    return _in_a_row(rows[:SHOTS], rows[SHOTS:], ())


def _like_lm_eval(rows: Sequence[Row]) -> list[Sample]:
    stop = ("Question:", "</s>", "<|im_end|>")
    return _in_a_row(rows[:SHOTS], rows[SHOTS:], stop)


TASKS = (
    Task(
        "gsm8k",
        "sglang-5-shot",
        TEST,
        _like_sglang,
        _judge(numbers.last_digits, numbers.same_value, _digits_of_truth),
    ),
    Task(
        "gsm8k",
        "sglang-run-eval",
        TEST,
        _like_run_eval,
        _judge(numbers.last_signed, numbers.same_value, numbers.read_truth),
    ),
    *(
        Task(
            "gsm8k",
            f"lm-eval-{name}",
            TEST,
            _like_lm_eval,
            _judge(extract, numbers.same_text, numbers.read_truth),
            # lm-eval draws five from the train split; these are its first five.
            shots=TRAIN,
        )
        for name, extract in (
            ("strict", numbers.after_hashes),
            ("flexible", numbers.last_flexible),
        )
    ),
    Task(
        "gsm8k",
        "llama-0-shot",
        TEST,
        lambda rows: _plain(rows, _LLAMA, 1024),
        _judge(numbers.final_answer, numbers.same_text, numbers.read_truth),
    ),
    Task(
        "gsm8k",
        "chat-0-shot",
        TEST,
        lambda rows: _plain(rows, _STEP_BY_STEP, 1024),
        _judge(numbers.last_number, numbers.same_value, numbers.read_truth),
    ),
)
