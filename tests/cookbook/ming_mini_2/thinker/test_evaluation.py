"""The rules of first prompts, the suite's questions, and the bounds."""

import json
from collections import Counter
from dataclasses import replace

import httpx
import pytest

from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.scenes import DrawnShape, Scene
from cookbook.ming_mini_2.thinker.dialog import DialogItem, call_of
from cookbook.ming_mini_2.thinker.evaluation.ask import Reply, chat_body, is_right_reply
from cookbook.ming_mini_2.thinker.evaluation.bounds import judge
from cookbook.ming_mini_2.thinker.evaluation.first_prompts import (
    MUST,
    Prompt,
    ask,
    broken_rules,
    draw_picture,
    prompt_body,
    read_prompts,
)
from cookbook.ming_mini_2.thinker.evaluation.look_alikes import count_look_alikes, tabulate
from cookbook.ming_mini_2.thinker.evaluation.suite import (
    Answered,
    Question,
    clip_questions,
    drawn_questions,
    entry,
    report,
)
from cookbook.ming_mini_2.thinker.excluded import Excluded
from cookbook.ming_mini_2.thinker.make import Clips
from sglang_omni.protocol.chat import ChatBody
from tests.cookbook.thinker.conftest import LEXICON

PROMPTS = read_prompts()


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt["prompt"])
def test_every_first_prompt_is_a_valid_request_that_silence_does_not_pass(prompt: Prompt) -> None:
    ChatBody.model_validate(prompt_body(prompt) | {"model": "ming-omni"})
    assert broken_rules(prompt, [Reply("")])
    assert broken_rules(prompt, [Reply("Zzz.")])
    assert "end" in broken_rules(prompt, [Reply("", finish_reason="length")])


def test_there_are_fifty_first_prompts() -> None:
    assert len({(one["prompt"], str(one.get("system"))) for one in PROMPTS}) == 50
    assert MUST == 45


@pytest.mark.parametrize(
    ("prompt", "reply", "broken"),
    [
        ({"any": ["Hello"]}, Reply("hello there"), ()),
        ({"any": ["hello"], "none": ["there"]}, Reply("hello there"), ("none",)),
        ({"number": 42}, Reply("17 + 25 = 42. The answer is 42."), ()),
        ({"number": 42}, Reply("42 or 41"), ("number",)),
        ({"regex": "r-i-v"}, Reply("R-I-V-E-R"), ()),
        ({"min_words": 3}, Reply("one two"), ("min_words",)),
        ({"json": {"a": 1}}, Reply('{"a":1}'), ()),
        ({"json": {"a": 1}}, Reply('{"a":2}'), ("json",)),
        ({"call": {"name": "f", "arguments": {"x": 1}}}, Reply("", (("f", {"x": 1}),)), ()),
        ({"call": {"name": "f", "arguments": {"x": 1}}}, Reply("f"), ("call",)),
    ],
)
def test_rules(prompt: Prompt, reply: Reply, broken: tuple[str, ...]) -> None:
    assert broken_rules(prompt, [reply]) == broken


@pytest.mark.parametrize("entry", [one for one in PROMPTS if "picture" in one], ids=str)
def test_pictures_of_first_prompts_show_what_they_say(entry: Prompt) -> None:
    scene = draw_picture(entry["picture"])
    shown = [[one.shape, one.colour] for one in scene.shapes]
    assert shown == entry["picture"].get("shapes", [])
    assert scene.draw().std() > 1


@pytest.mark.asyncio
async def test_a_call_is_answered_with_its_result_and_the_last_answer_is_judged() -> None:
    prompt = next(one for one in PROMPTS if "result" in one)
    sent: list[ChatBody] = []

    def serve(request: httpx.Request) -> httpx.Response:
        body = ChatBody.model_validate_json(request.content)
        sent.append(body)
        function = {"name": "get_weather", "arguments": '{"city": "Madrid"}'}
        calls = [{"id": "x", "type": "function", "function": function}]
        message: dict[str, object] = {"content": None, "tool_calls": calls}
        if len(sent) == 2:
            message = {"content": "It is 31 degrees and sunny in Madrid."}
        return httpx.Response(
            200, json={"choices": [{"message": message, "finish_reason": "stop"}]}
        )

    transport = httpx.MockTransport(serve)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        judged = await ask(client, "ming-omni", prompt)
    assert judged.broken == ()
    assert [message.role for message in sent[1].messages[-2:]] == ["assistant", "tool"]


def test_functions_are_offered_automatically_and_forced(excluded: Excluded) -> None:
    asked = list(drawn_questions(1, 3, LEXICON, excluded))
    rows = Counter(question.row for question in asked)
    assert rows["tool_call, automatic"] == rows["tool_call, forced"] == 3
    assert max(rows.values()) <= 3
    for question in asked:
        assert question.item.split == "held_out" or question.item.task == "reasoned"
        body = chat_body(question.item, question.clip, question.forced)
        ChatBody.model_validate(body | {"model": "ming-omni"})
        assert (body.get("tool_choice") == "required") == question.forced


def test_one_kind_can_be_asked_alone(excluded: Excluded) -> None:
    asked = list(drawn_questions(1, 2, LEXICON, excluded, ("picture",)))
    assert asked
    assert all(one.item.scene for one in asked)


def test_some_tasks_are_asked_alone(excluded: Excluded) -> None:
    tasks = ("count", "picture_colour")
    asked = list(drawn_questions(1, 2, LEXICON, excluded, ("text", "picture"), tasks))
    rows = Counter(question.row for question in asked)
    assert rows.keys() == set(tasks)
    assert max(rows.values()) == 2


def test_look_alikes_are_counted_of_the_shape_that_is_asked_for() -> None:
    shapes = (
        DrawnShape("circle", "red", (0, 0), 20, (0, 0)),
        DrawnShape("square", "red", (0, 1), 20, (0, 0)),
        DrawnShape("circle", "blue", (1, 1), 20, (0, 0)),
        DrawnShape("star", "green", (2, 1), 20, (0, 0)),
    )
    scene = Scene((128, 128), "white", shapes)
    red = Item("picture_where", "Where is the red circle?", "At the top left.", scene=scene)
    star = replace(red, question="Where do you see the green star?", answer="At the bottom.")
    answers = [
        Answered(Question("picture_where", red), Reply("At the top.")),
        Answered(Question("picture_where", star), Reply("At the bottom.")),
        Answered(Question("picture_count", red), Reply("At the top left.")),
    ]
    lines = [json.loads(json.dumps(entry(answer))) for answer in answers]
    assert [count_look_alikes(line) for line in lines[:2]] == [2, 0]
    assert count_look_alikes(lines[0] | {"question": "Is the red circle left of it?"}) is None
    assert tabulate(lines) == {
        "picture_where, look-alikes: 0": (1, 1),
        "picture_where, look-alikes: 2": (0, 1),
        "picture_where, picture first": (1, 2),
    }


def test_clips_of_the_suite_are_held_out(clips: Clips, excluded: Excluded) -> None:
    asked = list(clip_questions(clips.folder, clips.texts, 1, 5, excluded))
    assert asked
    assert all(one.item.split == "held_out" and one.clip is not None for one in asked)


def test_calls_are_compared_by_value() -> None:
    item = DialogItem("tool_call", "x", "", calls=(call_of("f", {"a": 1, "b": "x"}),))
    assert is_right_reply(item, Reply("", (("f", {"b": "x", "a": 1}),)))
    assert not is_right_reply(item, Reply("", (("f", {"b": "x", "a": 2}),)))
    assert not is_right_reply(item, Reply("", (("g", {"b": "x", "a": 1}),)))
    assert not is_right_reply(item, Reply('f {"a": 1}'))


def test_an_answer_that_ran_to_the_limit_is_wrong() -> None:
    item = Item("arithmetic", "2 + 2", "4", "number")
    assert is_right_reply(item, Reply("4"))
    assert not is_right_reply(item, Reply("4", finish_reason="length"))


def test_a_report_has_accuracy_and_word_error() -> None:
    item = Item("transcribe", "", "one two three four", "words", speech="one two three four")
    said = ("one two three four", "one two three")
    answers = [Answered(Question("transcribe", item), Reply(text)) for text in said]
    row = report(answers)["transcribe"]
    assert (row["items"], row["accuracy"], row["word_error"]) == (2, 0.5, 1 / 8)


def test_bounds_are_met_only_by_means_and_by_every_kind() -> None:
    rows = {"picture_a": {"accuracy": 1.0}, "picture_b": {"accuracy": 0.72}}
    pictures = next(one for one in judge(rows) if one.bound.rows == ("picture_",))
    assert pictures.is_met
    rows["picture_b"] = {"accuracy": 0.69}
    pictures = next(one for one in judge(rows) if one.bound.rows == ("picture_",))
    assert pictures.low == ("picture_b",)
    assert not pictures.is_met
    words = next(one for one in judge({"transcribe": {"word_error": 0.2}}) if one.mean)
    assert not words.is_met
    assert not any(one.is_met for one in judge({}))
