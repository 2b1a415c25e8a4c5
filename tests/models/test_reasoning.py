"""A leading thought is told from what is said, however the answer is cut into deltas."""

import time
from collections.abc import Iterator

import pytest

from sglang_omni.models.chat import Reasoning
from sglang_omni.models.reasoning import ThinkTagParser


def said(*deltas: str) -> list[str]:
    return [part for part in parts(*deltas) if isinstance(part, str)]


def parts(*deltas: str) -> list[str | Reasoning]:
    parser = ThinkTagParser()
    found = [part for delta in deltas for part in parser.push(delta)]
    return [*found, *parser.finish()]


def cuts(text: str) -> Iterator[tuple[str, ...]]:
    """Every way to cut `text` into three deltas, some of them empty, and letter by letter."""
    for i in range(len(text) + 1):
        for j in range(i, len(text) + 1):
            yield text[:i], text[i:j], text[j:]
    yield tuple(text)


CASES = {
    "thought": ("<think>a plan</think>The answer.", "The answer."),
    "blanks around": ("\n <think>\na plan\n</think>\n\n The answer. ", "The answer. "),
    "empty thought": ("<think></think>\n\nYes.", "Yes."),
    "absent": ("The answer.", "The answer."),
    "absent, blanks first": ("\n\n The answer.", "\n\n The answer."),
    "a mark that breaks off": ("<thin ice", "<thin ice"),
    "another tag": (" <b>bold</b>", " <b>bold</b>"),
    "only the beginning of a mark": (" <thi", " <thi"),
    "unclosed": ("<think>a plan without end", ""),
    "unclosed, nearly": ("<think>a plan</think", ""),
    "nothing after": ("<think>a plan</think>\n", ""),
    "text before": ("First <think>a plan</think> then.", "First <think>a plan</think> then."),
    "a mark in the thought": ("<think>a <think> b</thin></think>Yes.", "Yes."),
    "a second thought": ("<think>a</think>Yes. <think>b</think>", "Yes. <think>b</think>"),
    "a closing mark alone": ("</think>Yes.", "</think>Yes."),
    "nothing": ("", ""),
    "blanks alone": ("  \n", "  \n"),
}


@pytest.mark.parametrize(("answer", "spoken"), CASES.values(), ids=CASES)
def test_the_rule_does_not_depend_on_how_the_answer_is_cut(answer: str, spoken: str) -> None:
    for deltas in cuts(answer):
        assert "".join(said(*deltas)) == spoken, deltas


THOUGHTS = {
    "<think>a plan</think>The answer.": "a plan",
    "\n <think>\n a plan, \n in two lines\n</think>\n\n Yes.": "a plan, \n in two lines",
    "<think></think>\n\nYes.": "",
    "<think>  </think>Yes.": "",
    "The answer.": "",
    "<think>a plan without end ": "a plan without end",
    "<think>a plan</thin": "a plan</thin",
    "<think>a < b</think>Yes.": "a < b",
}


@pytest.mark.parametrize(("answer", "thought"), THOUGHTS.items())
def test_the_thought_does_not_depend_on_how_the_answer_is_cut(answer: str, thought: str) -> None:
    for deltas in cuts(answer):
        found = [part.text for part in parts(*deltas) if isinstance(part, Reasoning)]
        assert "".join(found) == thought, deltas


def test_a_thought_is_told_while_it_is_thought() -> None:
    found = parts("<think>", "first", " then", " last", "</think>", "Yes.")
    assert found == [Reasoning("first"), Reasoning(" then"), Reasoning(" last"), "Yes."]


def test_what_is_said_is_not_delayed() -> None:
    deltas = ["<think>", "plan", "</think>", "\n\n", "The ", "answer."]
    assert said(*deltas) == ["The ", "answer."]
    assert said("The ", "<think>") == ["The ", "<think>"]


def test_no_empty_deltas_leave() -> None:
    assert said("", "<think>", "", "</think>", "", "Yes.", "") == ["Yes."]


def test_a_long_thought_costs_no_more_per_token() -> None:
    """50,000 tokens: searching the whole thought for each of them would take minutes."""
    began = time.process_time()
    assert said("<think>", *["some thought, "] * 50_000, "</think>", "Yes.") == ["Yes."]
    assert time.process_time() - began < 2


def test_the_parser_has_ended_once_nothing_but_content_can_follow() -> None:
    parser = ThinkTagParser()
    ended = [(parser.push(delta), parser.has_ended)[1] for delta in (" ", "<think>a", "</think>\n")]
    assert ended == [False, False, False]
    assert (parser.push("Yes."), parser.has_ended) == (["Yes."], True)
