"""Answers are taken for what their convention takes them for: outputs as models give, by hand."""

import json
from pathlib import Path

import pytest

from benchmarks.client.target import ChatRequest, TextPart
from benchmarks.evaluation import agreement
from benchmarks.evaluation.tasks import TASKS, choices, numbers, open_answers
from benchmarks.evaluation.tasks.task import Sample
from measurement.word_errors import count_word_errors, normalise_words, summarise_word_errors

OPTIONS = ("Kidney", "Liver", "Heart muscle", "Left lung")
COT = "The tissue has striations and one nucleus per cell, so B is out.\n\n"


def at_most(answer: str) -> Sample:
    request = ChatRequest((TextPart("Which one?"),))
    return Sample("s1", request, {"answer": answer, "options": list(OPTIONS), "open": False})


@pytest.mark.parametrize(
    ("said", "digits", "signed", "strict", "flexible", "llama", "plain"),
    [
        ("She has 3 * 6 = 18.\n#### 18", "18", "18", "18", "18", None, "18"),
        ("That is $1,250.", "1250", "1250.", None, "$1,250.", None, "1250"),
        ("He pays $3.50", "50", "3.50", None, "$3.50", None, "3.50"),
        ("The final answer is 42.", "42", "42.", None, "42.", "42.", "42"),
        ("The final answer is $42 per day for 7 days", "7", "7", None, "7", "$42", "7"),
        ("It fell by -5 degrees", "5", "-5", None, "-5", None, "-5"),
        ("#### 1,000,000 stars", "1000000", "1000000", "1,000,000", "1,000,000", None, "1000000"),
        ("Twelve apples", None, None, None, None, None, None),
        ("", None, None, None, None, None, None),
        ("Agent 007", None, None, None, "007", None, "007"),
        ("**Answer:** 64 km/h", "64", "64", None, "64", None, "64"),
        ("\\boxed{72}", "72", "72", None, "72", None, "72"),
    ],
)
def test_a_number_is_what_each_convention_finds(
    said: str,
    digits: str | None,
    signed: str | None,
    strict: str | None,
    flexible: str | None,
    llama: str | None,
    plain: str | None,
) -> None:
    assert numbers.last_digits(said) == digits
    assert numbers.last_signed(said) == signed
    assert numbers.after_hashes(said) == strict
    assert numbers.last_flexible(said) == flexible
    assert numbers.final_answer(said) == llama
    assert numbers.last_number(said) == plain


def test_text_and_value_are_different_equalities() -> None:
    assert numbers.same_text("$1,250.", "1250")
    assert numbers.same_value("1,250", "1250.0")
    assert not numbers.same_text("18.00", "18")
    assert numbers.same_value("18.00", "18")
    assert not numbers.same_value("eighteen", "18")


@pytest.mark.parametrize(
    ("said", "mmmu", "lmms", "surest", "line", "first"),
    [
        ("C", "C", "C", "C", "C", "C"),
        ("C.", "C", "C", "C", "C", "C"),
        ("(C) Heart muscle", "C", "C", "C", "C", None),
        ("C. Heart muscle", None, "C", "C", None, None),
        (COT + "Answer: C", "C", "C", "C", "C", None),
        (COT + "**Answer: C**", "B", "B", "B", "C", None),
        (COT + "Answer: $C$", "B", "B", "B", "C", None),
        ("Answer: B\nNo, wait.\nanswer: c", None, None, "B", "C", None),
        ("Answer: Cells divide", None, None, "C", None, None),
        ("The tissue in question is clearly the heart muscle", "C", "C", None, "C", None),
        ("Neither (A) nor (B), so it is (C)", "C", "C", "C", "C", None),
        ("A closer look shows that the answer is C", "C", "C", "A", "C", None),
        ("I cannot tell.", None, None, None, None, None),
        ("", None, None, None, None, None),
        ("c", None, None, None, None, "C"),
        ("(c)\nbecause", None, None, None, None, "C"),
        ("答案是C", None, "C", "C", None, None),
        ("Option E", None, None, None, None, None),
    ],
)
def test_a_letter_is_what_each_convention_finds(
    said: str,
    mmmu: str | None,
    lmms: str | None,
    surest: str | None,
    line: str | None,
    first: str | None,
) -> None:
    assert choices.mmmu_letter(said, OPTIONS) == mmmu
    assert choices.lmms_letter(said, OPTIONS) == lmms
    assert choices.surest_letter(said, OPTIONS) == surest
    assert choices.answer_line(said, OPTIONS) == line
    assert choices.first_line(said, OPTIONS) == first


def test_a_guess_is_told_from_an_answer_and_always_the_same() -> None:
    judge = TASKS["mmmu/lmms-eval"].judge
    assert judge is not None
    verdicts = {judge(at_most("C"), "No idea.").extracted for _ in range(5)}
    assert len(verdicts) == 1
    assert judge(at_most("C"), "No idea.").how == "guessed"
    assert judge(at_most("C"), "(C)") == choices.or_guess("C", "C", 4, "s1")
    wrong = TASKS["mmmu/sglang-omni-cot"].judge
    assert wrong is not None
    assert wrong(at_most("C"), "No idea.").how == "none"


@pytest.mark.parametrize(
    ("said", "truth", "right"),
    [
        ("The area is 24.0 square metres", "24", True),
        ("So we get x = 1,250", "1250", True),
        ("It could be either 5 or 6", "7", False),
        ("The capital is Paris.", "Paris", True),
        ("The capital is Lyon.", "Paris", False),
        ("therefore x", "x", True),
        ("extra", "x", False),
    ],
)
def test_an_open_answer_is_read_by_its_key_words(said: str, truth: str, right: bool) -> None:
    assert open_answers.matches_truth(open_answers.parse_open_answer(said), truth) == right


def test_scores_agree_with_those_of_the_independent_harnesses() -> None:
    recorded = Path(agreement.__file__).parents[1] / "results" / "agreement.json"
    table = json.loads(recorded.read_text(encoding="utf-8"))
    cases = [agreement.Case(*row) for row in table["rows"]]
    known = [case for case in cases if case.convention in agreement.OURS]
    assert {case.convention for case in known} == set(agreement.OURS)
    assert len({case.output for case in known}) >= 200
    different = [
        case
        for case in known
        if agreement.OURS[case.convention](case.output, case.truth) != case.theirs
    ]
    assert different == []
    for case in (case for case in cases if case.convention == "wer"):
        counted = count_word_errors(case.truth, case.output, case.form)
        assert f"{counted.wrong}/{counted.words}" == case.theirs


def test_words_are_normalised_as_seed_tts_does() -> None:
    assert normalise_words("It's well-known, isn't it?", "en") == [
        "it's",
        "wellknown",
        "isn't",
        "it",
    ]
    assert normalise_words("会议改到“下午”，OK！", "zh") == list("会议改到下午OK")
    rates = summarise_word_errors(
        [count_word_errors("a b c d", "a b c d", "en"), count_word_errors("one two", "three", "en")]
    )
    assert rates == {"items": 2, "wer_corpus": 2 / 6, "wer_mean": 0.5, "bad": 1}
    assert count_word_errors("", "noise", "en").rate == 1.0
    assert count_word_errors("", "", "en").rate == 0.0
