"""The benchmark of the API process reads what it got to the byte, and runs."""

import json
import shlex
from typing import Literal

import pytest

from benchmarks.client.raw import RawAnswer, RawLoad, arrival_times, body_chunks
from benchmarks.serving.api_capacity import (
    Case,
    ExpectedAnswer,
    check_tone,
    event_texts,
    measure_round,
    parse_arguments,
    select_best,
    summarise_text,
)
from benchmarks.serving.api_process import ANSWER
from benchmarks.synthetic.thinker import ThinkerPace, open_worker
from sglang_omni.engines.runtime.worker import StepInput, StepWorker
from sglang_omni.engines.thinker.contract import ThinkerOutput, ThinkerRequest
from sglang_omni.protocol.sampling import SamplingParams
from tests.server.running import free_port

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


def framed(*events: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events)


def said(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"


def answer(body: bytes, *reads: tuple[float, int]) -> RawAnswer:
    return RawAnswer(0.0, True, list(reads), bytearray(body))


def test_pieces_are_timed_by_the_read_that_completed_them() -> None:
    body = HEAD + framed(b"one", b"two")
    ends = [end for end, _ in body_chunks(body)]
    assert [piece for _, piece in body_chunks(body)] == [b"one", b"two"]
    cut = ends[0] - 1
    seen = answer(body, (1.0, cut), (2.0, 2), (3.0, len(body) - cut - 2))
    assert arrival_times(seen, ends) == [2.0, 3.0]
    assert [piece for _, piece in body_chunks(body[:-1])] == [b"one"]


def test_an_error_is_no_answer() -> None:
    with pytest.raises(ValueError, match="429"):
        body_chunks(b"HTTP/1.1 429 Too Many Requests\r\n\r\n")
    with pytest.raises(ValueError, match="died"):
        list(event_texts(b'data: {"error":{"message":"it died"}}\n\n'))


def test_tokens_are_counted_by_where_the_text_has_come_to() -> None:
    expected = ExpectedAnswer(30)
    ends = [size for size in range(len(expected.text) + 1) if _is_end(expected, size)]
    assert len(ends) == 31
    assert ANSWER.startswith(expected.text)
    assert [expected.tokens(size) for size in ends] == list(range(31))


def _is_end(expected: ExpectedAnswer, size: int) -> bool:
    try:
        expected.tokens(size)
    except ValueError:
        return False
    return True


def test_only_what_came_in_the_window_counts_and_a_wrong_word_is_found() -> None:
    expected = ExpectedAnswer(30)
    ends = [size for size in range(len(expected.text) + 1) if _is_end(expected, size)]
    one, three = expected.text[: ends[1]], expected.text[ends[1] : ends[4]]
    body = HEAD + framed(said(one), said(three))
    reads = ((1.0, body_chunks(body)[0][0]), (2.5, 10_000))
    row = summarise_text(RawLoad([answer(body, *reads)], 0.1, 0.0), (2.0, 3.0))
    assert (row["tokens_per_s"], row["events_per_s"], row["tokens_per_event"]) == (3, 1, 3.0)
    wrong = answer(HEAD + framed(said("Never")), (1.0, 10_000))
    with pytest.raises(ValueError, match="differs from the thinker's"):
        summarise_text(RawLoad([wrong], 0.1, 0.0), (0.0, 3.0))


def test_silence_is_not_the_tone() -> None:
    with pytest.raises(ValueError, match="tone"):
        check_tone(HEAD + framed(b"RIFF" + bytes(1000)))


def test_the_synthetic_thinker_gives_who_was_behind_what_it_missed() -> None:
    worker = open_worker(ThinkerPace(step_ms=0, answer=(5, 6)))
    assert isinstance(worker, StepWorker)
    request = ThinkerRequest((1,), SamplingParams(max_tokens=4))
    ((_, first),) = worker.step(StepInput((("a", request),)))
    assert worker.step(StepInput(stalled=frozenset("a"))) == []
    ((_, second),) = worker.step(StepInput())
    assert isinstance(first, ThinkerOutput)
    assert isinstance(second, ThinkerOutput)
    assert (first.token_ids, second.token_ids) == ((5,), (6, 5))
    ((_, last),) = worker.step(StepInput())
    assert isinstance(last, ThinkerOutput)
    assert last.token_ids == (6,)
    assert last.last
    assert not worker.busy


def test_a_bound_is_judged_by_what_was_carried_and_by_processor_time_where_that_tells() -> None:
    def seen(events: int, together: float) -> dict[str, float]:
        return {"events_per_s": events, "tokens_per_event": together, "events_per_core_second": 9}

    def bound(asked: float, *rounds: dict[str, float]) -> list[object]:
        row = select_best(Case("one event a token", "text", 4, asked, 8), rounds)
        return [row["bound"]["carried"], row["bound"]["by_processor_time"]]

    assert bound(10, seen(7, 1.0), seen(8, 1.0)) == [True, True]
    assert bound(10, seen(7, 3.0)) == [False, None]
    assert bound(5, seen(5, 1.0)) == [None, True]


@pytest.mark.extended
@pytest.mark.alone
@pytest.mark.parametrize("kind", ["text", "speech"])
def test_a_case_is_measured(kind: Literal["text", "speech"]) -> None:
    short = f"--out unused --seconds 1 --tokens 20 --patches 3 --port {free_port()}"
    rate = 100 if kind == "text" else 10
    row = measure_round(Case("short", kind, 4, rate, 0), parse_arguments(shlex.split(short)))
    carried = row["tokens_per_s" if kind == "text" else "audio_s_per_s"]
    assert carried > rate / 4
    assert row["whole_answers"] >= 2
    assert 0 < row["api_core"] < 1
