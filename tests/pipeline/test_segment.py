"""The segmenter against the reference's events, and where it differs on purpose."""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

import pytest

from sglang_omni.pipeline.segment import (
    Segment,
    Segmenter,
    SegmentSettings,
    SystemClock,
    count_units,
    stream_segments,
)
from sglang_omni.protocol.errors import ConfigError
from tests.testing.clock import FakeClock, timed
from tests.testing.golden import cases, load_case

CJK = re.compile(r"[\u4e00-\u9fff]")
IDLE_TICK = 100  # ms; the reference's scheduler looks at its segmenter that often


def entries(cjk: bool) -> list[dict[str, Any]]:
    """The golden entries with text, with or without CJK characters in it."""
    found = [e for name in cases("segmenter") for e in load_case(name).info["cases"]]
    texts = ["".join(text for _, text in e["events"]) for e in found]
    return [e for e, text in zip(found, texts, strict=True) if bool(CJK.search(text)) == cjk]


def settings_of(entry: dict[str, Any]) -> SegmentSettings:
    names = {"segment_min_tokens": "min_tokens", "segment_max_tokens": "max_tokens"}
    names["first_segment_min_tokens"] = "first_min_tokens"
    given = dict(entry["config"])
    wait = given.pop("first_segment_max_wait_ms", 450)
    limits = {names[key]: value for key, value in given.items()}
    return SegmentSettings(**limits, first_max_wait_s=wait / 1000)


def answer(entry: dict[str, Any]) -> str:
    return "".join(text for _, text in entry["events"])


def reference_calls(entry: dict[str, Any]) -> Iterator[tuple[int, str | None]]:
    """(ms, text) of every call the reference makes: messages, and a tick when 100 ms idle."""
    last = 0
    for moment, text in [*entry["events"], (entry["end_ms"], None)]:
        while moment - last > IDLE_TICK:
            last += IDLE_TICK
            yield last, ""
        last = moment
        yield moment, text


def replay_as_reference(entry: dict[str, Any]) -> list[tuple[int, Segment, bool]]:
    """(ms, segment, final) with the reference's calls."""
    segmenter = Segmenter(settings_of(entry))
    sent = []
    for moment, text in reference_calls(entry):
        due = list(segmenter.flush()) if text is None else segmenter.push(text, moment / 1000)
        sent += [(moment, segment, text is None) for segment in due]
    return sent


async def replay(
    events: Sequence[tuple[float, str]], end: float, settings: SegmentSettings | None = None
) -> list[tuple[float, Segment]]:
    """(seconds, segment) as the pipeline sends them, on a fake clock."""
    clock = FakeClock()
    stream = stream_segments(timed(events, end, clock), settings or SegmentSettings(), clock)
    return [(clock.now(), segment) async for segment in stream]


def spaced(text: str, gap: float, cut: str = r"\S+\s*") -> tuple[list[tuple[float, str]], float]:
    """`text` in pieces, one every `gap` seconds, and the time of the end."""
    parts = re.findall(cut, text)
    return [(i * gap, part) for i, part in enumerate(parts)], len(parts) * gap


@pytest.mark.parametrize("entry", entries(cjk=False), ids=lambda e: e["name"])
def test_text_without_cjk_is_cut_as_the_reference_cuts_it(entry: dict[str, Any]) -> None:
    """Except that white space alone, and an empty end, are not segments to us."""
    expected = [
        (s["ms"], s["id"], s["text"], s["final"]) for s in entry["segments"] if s["text"].strip()
    ]
    sent = [(ms, s.index, s.text, final) for ms, s, final in replay_as_reference(entry)]
    assert sent == expected


@pytest.mark.parametrize("entry", entries(cjk=False), ids=lambda e: e["name"])
async def test_first_segment_waits_for_its_deadline_and_not_for_an_idle_tick(
    entry: dict[str, Any],
) -> None:
    """The reference polls every 100 ms; the pipeline waits for exactly the deadline."""
    settings = settings_of(entry)
    events = [(ms / 1000, text) for ms, text in entry["events"]]
    sent = await replay(events, entry["end_ms"] / 1000, settings)
    first = next((s["ms"] / 1000 for s in entry["segments"] if s["text"].strip()), None)
    assert (first is None) == (not sent)
    assert first is None or sent[0][0] <= first + 1e-9
    spoken = "".join(s.source for _, s in sent)
    assert answer(entry).startswith(spoken)
    assert count_units(spoken) == count_units(answer(entry))


@pytest.mark.parametrize("entry", entries(cjk=True), ids=lambda e: e["name"])
async def test_cjk_text_streams_within_the_limits_and_sooner_than_the_reference(
    entry: dict[str, Any],
) -> None:
    """The reference counts blanks, so Chinese is one unit until the answer ends."""
    settings = settings_of(entry)
    events = [(ms / 1000, text) for ms, text in entry["events"]]
    sent = await replay(events, entry["end_ms"] / 1000, settings)
    assert "".join(s.source for _, s in sent) == answer(entry)
    assert all(1 <= count_units(s.text) <= settings.max_tokens for _, s in sent)
    assert all(count_units(s.text) >= settings.first_min_tokens for _, s in sent[:-1])
    assert sent[0][0] <= entry["segments"][0]["ms"] / 1000
    assert len(sent) >= len([s for s in entry["segments"] if s["text"]])


async def test_golden_chinese_is_cut_at_its_sentences() -> None:
    entry = next(e for e in entries(cjk=True) if e["name"] == "chinese")
    events = [(ms / 1000, text) for ms, text in entry["events"]]
    sent = await replay(events, entry["end_ms"] / 1000)
    assert [(when, s.text) for when, s in sent] == [
        (0.33, "今天天气很好，我们一起去公园散步吧。"),
        (0.57, "小河边的柳树长出了新的叶子！"),
    ]
    assert entry["segments"][0]["ms"] == entry["end_ms"]  # the reference waited for the end


async def test_first_chinese_segment_leaves_after_its_wait_with_four_characters() -> None:
    events, end = spaced("我今天想和你说一个很长很长的故事", 0.1, cut=r"..?")
    sent = await replay(events, end)
    assert [(when, s.text) for when, s in sent] == [
        (0.45, "我今天想和你说一个很"),
        (end, "长很长的故事"),
    ]


def test_units_are_words_and_cjk_characters() -> None:
    assert count_units("The price is 3.14, isn't it?") == 6
    assert count_units("今天天气，很好。") == 6
    assert count_units("我有iPhone 15，好吗？") == 6
    assert count_units("“你好”（世界）… カタカナ") == 8
    assert count_units(" \n\t ") == 0


@pytest.mark.parametrize("text", ["word " * 97, "长" * 97 + "。", "长word " * 61, "a,b。" * 45])
def test_a_full_segment_is_cut_at_the_fortieth_unit_without_losing_a_character(text: str) -> None:
    segmenter = Segmenter(SegmentSettings())
    sent = segmenter.push(text, 0.0)
    while segmenter.next_deadline() is not None:
        sent += segmenter.tick(0.0)
    sent += list(segmenter.flush())
    assert [count_units(s.text) for s in sent[:-1]] == [40] * (len(sent) - 1)
    assert "".join(s.source for s in sent) == text
    assert [s.index for s in sent] == list(range(len(sent)))


def test_words_of_a_full_segment_are_joined_by_single_blanks_and_their_source_kept() -> None:
    text = "  one\ttwo\n\nthree  four"
    segmenter = Segmenter(SegmentSettings(min_tokens=3, max_tokens=3, first_min_tokens=3))
    first, *rest = segmenter.push(text, 0.0) + list(segmenter.flush())
    assert (first.text, first.source) == ("one two three", "  one\ttwo\n\nthree  ")
    assert [s.source for s in rest] == ["four"]


def test_flush_keeps_the_limit() -> None:
    """The reference sends whatever is left as one segment, however long."""
    segmenter = Segmenter(SegmentSettings())
    sent = segmenter.push("长" * 130, 0.0) + list(segmenter.flush())
    assert [count_units(s.text) for s in sent] == [40, 40, 40, 10]


@pytest.mark.parametrize("number", ["3.14", "1,000", "9:30", "2024", "$3.50", "-7.5"])
@pytest.mark.parametrize("lead", ["one two three four five six seven is ", "这一天的气温大约是"])
def test_a_number_is_never_cut(number: str, lead: str) -> None:
    """The reference ends a sentence at "3." although "14" follows in the next delta."""
    for cut in range(1, len(number)):
        for wait in (0.0, 0.45):
            segmenter = Segmenter(SegmentSettings(first_max_wait_s=wait))
            sent = segmenter.push(lead + number[:cut], 0.0) + segmenter.tick(1.0)
            sent += segmenter.push(number[cut:] + " degrees", 1.5) + list(segmenter.flush())
            assert sum(number in s.source for s in sent) == 1, (cut, [s.source for s in sent])
            assert "".join(s.source for s in sent) == f"{lead}{number} degrees"


def test_a_sentence_that_ends_in_a_number_leaves_with_the_next_character() -> None:
    settings = SegmentSettings(first_max_wait_s=60)
    segmenter = Segmenter(settings)
    assert segmenter.push("The old stone mill was built in the year 1867.", 0.0) == []
    (segment,) = segmenter.push(" It", 0.1)
    assert segment.text == "The old stone mill was built in the year 1867."
    assert [s.source for s in list(segmenter.flush())] == [" It"]


def test_a_number_at_the_end_of_the_answer_is_sent_by_the_flush() -> None:
    segmenter = Segmenter(SegmentSettings())
    assert segmenter.push("The old stone mill was built in the year 1867.", 0.0) == []
    assert len(list(segmenter.flush())) == 1


def test_the_fortieth_word_is_not_cut_in_two() -> None:
    """The reference sends 40 words at once although the last may be half a word."""
    segmenter = Segmenter(SegmentSettings(first_max_wait_s=60))
    assert segmenter.push("word " * 39 + "half", 0.0) == []
    (segment,) = segmenter.push("way there", 0.1)
    assert segment.text.endswith("word halfway")


def test_white_space_alone_is_not_sent() -> None:
    """The reference counts its characters, and sends four of them after 450 ms."""
    segmenter = Segmenter(SegmentSettings())
    assert segmenter.push("   ", 0.0) + segmenter.push("\n\n", 0.5) + segmenter.tick(9.0) == []
    assert segmenter.next_deadline() is None
    assert list(segmenter.flush()) == []


def test_nothing_in_nothing_out() -> None:
    segmenter = Segmenter(SegmentSettings())
    assert segmenter.push("", 0.0) == []
    assert segmenter.next_deadline() is None
    assert list(segmenter.flush()) == []


def test_deadline_is_the_wait_of_the_first_segment_only() -> None:
    segmenter = Segmenter(SegmentSettings())
    assert segmenter.push("one two three ", 7.0) == []
    assert segmenter.next_deadline() is None  # waiting would not help
    assert segmenter.push("four ", 7.1) == []
    assert segmenter.next_deadline() == 7.0 + 0.45
    assert segmenter.tick(7.44) == []
    assert [s.text for s in segmenter.tick(7.0 + 0.45)] == ["one two three four "]
    assert segmenter.push("five six seven eight nine ", 8.0) == []
    assert segmenter.next_deadline() is None


async def test_first_segment_leaves_a_word_that_may_go_on_behind() -> None:
    """The reference would speak "chil" and then "dren"."""
    events = [(0.0, "The river, the mill and the chil"), (0.46, "dren on the bridge.")]
    sent = await replay(events, 1.0)
    assert [(when, s.text) for when, s in sent] == [
        (0.45, "The river, the mill and the "),
        (1.0, "children on the bridge."),
    ]


async def test_first_segment_takes_an_open_word_after_the_grace_when_it_has_no_other() -> None:
    sent = await replay([(0.0, "one two three four")], 2.0)
    assert [(round(when, 6), s.text) for when, s in sent] == [(0.5, "one two three four")]


def test_a_tick_at_the_deadline_always_cuts() -> None:
    """Otherwise the pipeline would spin on a deadline that has passed."""
    rng = random.Random(2)
    texts = ["one ", "3.", "14", "今天", "。", " ", "half", "way ", "!", "9:", "\n", "，"]
    for _ in range(2000):
        segmenter = Segmenter(SegmentSettings(min_tokens=3, max_tokens=6, first_min_tokens=2))
        now = rng.random()
        for _ in range(12):
            segmenter.push(rng.choice(texts), now)
            deadline = segmenter.next_deadline()
            if deadline is not None and rng.random() < 0.7:
                now = max(now, deadline)
                assert segmenter.tick(now)
            now += rng.random() / 3


def test_random_text_is_preserved_and_bounded() -> None:
    rng = random.Random(3)
    texts = ["word", " ", "3.", "14", "今天天气", "。", "!", "\n", "，", "😀", "it's", ": ", "“"]
    for _ in range(500):
        segmenter, settings = Segmenter(SegmentSettings(3, 6, 2)), SegmentSettings(3, 6, 2)
        parts = [rng.choice(texts) for _ in range(rng.randrange(60))]
        sent = [s for i, part in enumerate(parts) for s in segmenter.push(part, i * 0.05)]
        sent += list(segmenter.flush())
        rest = "".join(parts).removeprefix("".join(s.source for s in sent))
        assert "".join(s.source for s in sent) + rest == "".join(parts)
        assert count_units(rest) == 0
        assert all(1 <= count_units(s.text) <= settings.max_tokens for s in sent)


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_tokens": 0},
        {"first_min_tokens": 0},
        {"max_tokens": 0},
        {"min_tokens": 41},
        {"first_min_tokens": 41},
        {"first_max_wait_s": -0.1},
        {"first_max_wait_s": float("nan")},
    ],
)
def test_contradictory_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        SegmentSettings(**wrong)


async def test_a_burst_leaves_at_once_segment_by_segment() -> None:
    sent = await replay([(1.0, "word " * 130)], 9.0)
    assert [(when, count_units(s.text)) for when, s in sent] == [
        (1.0, 40), (1.0, 40), (1.0, 40), (9.0, 10),
    ]  # fmt: skip


async def test_system_clock_sends_the_first_segment_while_the_answer_is_silent() -> None:
    release = asyncio.Event()

    async def texts() -> AsyncGenerator[str, None]:
        yield "one two three four"
        await release.wait()

    stream = stream_segments(texts(), SegmentSettings(first_max_wait_s=0.02), SystemClock())
    segment = await asyncio.wait_for(anext(stream), 5)
    assert segment.text == "one two three four"
    release.set()
    assert [s async for s in stream] == []


@pytest.mark.parametrize("close", [True, False], ids=["closed", "cancelled"])
async def test_stopping_cancels_the_read_in_flight(close: bool) -> None:
    reading, cancelled = asyncio.Event(), asyncio.Event()

    async def texts() -> AsyncGenerator[str, None]:
        yield "one two three four five six seven eight."
        try:
            reading.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    stream = stream_segments(texts(), SegmentSettings(), SystemClock())
    await anext(stream)
    waiting = asyncio.create_task(anext(stream))
    await reading.wait()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert cancelled.is_set()
    if close:
        await stream.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_error_of_the_source_passes_through() -> None:
    async def texts() -> AsyncGenerator[str, None]:
        yield "one"
        raise ValueError("engine")

    with pytest.raises(ValueError, match="engine"):
        async for _ in stream_segments(texts(), SegmentSettings(), SystemClock()):
            pass
