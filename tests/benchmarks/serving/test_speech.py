"""The speech benchmark measures what it says: playback, percentiles, loads, failures."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.client import load
from benchmarks.client.load import Load, run_load
from benchmarks.client.playback import AudioChunk, Playback, play_chunks
from benchmarks.client.sound import AudioReceiver
from benchmarks.client.speech import SpeechQuery
from benchmarks.serving import speech
from benchmarks.serving.speech_summary import (
    find_largest_passing,
    percentile,
    percentiles,
    summarise_speech,
)
from sglang_omni.media.wav import build_header
from sglang_omni.pipeline.request import AudioDelta, Finished, Usage
from sglang_omni.protocol.errors import Overloaded
from tests.entrypoints.http.fake import FakeBackend, Served, playing, serving, tone
from tests.testing.family import RATE

pytestmark = pytest.mark.alone

PATCH_S = len(tone()) / RATE


@pytest.fixture
def server() -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.fixture
def backend(server: Served) -> FakeBackend:
    return server.backend


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Client processes begin as they come, not together."""
    monkeypatch.setattr(load, "START_S", 0.0)


def query(server: Served, **fields: Any) -> SpeechQuery:
    return SpeechQuery(server.url, "org/ming", texts=("one two three",), **fields)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], Playback(0, 0.0, 0.0, None)),
        ([(1.0, 0.5)], Playback(0, 0.0, 0.5, 1.5)),
        ([(1.0, 0.5), (1.0, 0.5)], Playback(0, 0.0, 1.0, 2.0)),
        ([(1.0, 0.5), (1.5, 0.5)], Playback(0, 0.0, 1.0, 2.0)),
        ([(1.0, 0.5), (1.75, 0.5)], Playback(1, 0.25, 1.0, 2.25)),
        # The second gap counts from where the first one moved the playback.
        ([(1.0, 0.5), (1.75, 0.5), (2.2, 0.5), (3.0, 0.5)], Playback(2, 0.5, 2.0, 3.5)),
        ([(1.0, 0.5), (1.1, 0.5), (1.9, 0.5)], Playback(0, 0.0, 1.5, 2.5)),
    ],
)
def test_playback_runs_dry_where_it_catches_up(
    pieces: list[tuple[float, float]], expected: Playback
) -> None:
    heard = play_chunks(AudioChunk(*piece) for piece in pieces)
    assert (heard.underruns, heard.ends_at_s) == (expected.underruns, expected.ends_at_s)
    assert heard.dry_s == pytest.approx(expected.dry_s)
    assert heard.audio_s == pytest.approx(expected.audio_s)


def test_a_header_is_no_audio_wherever_it_is_cut() -> None:
    head, samples = build_header(50, None), bytes(range(200))
    ear = AudioReceiver(keep=True)
    ear.receive(head[:3], at_s=1.0)
    ear.receive(head[3:40], at_s=1.5)
    ear.receive(head[40:], at_s=2.0)
    before = ear.first_at_s
    assert before is None
    ear.receive(samples[:50], at_s=3.0)
    assert (ear.first_at_s, ear.playback.ends_at_s, ear.rate) == (3.0, 3.5, 50)
    ear.receive(samples[50:], at_s=3.1)
    assert bytes(ear.samples) == samples
    joined = AudioReceiver()
    joined.receive(head + samples[:100], at_s=1.0)
    assert (joined.first_at_s, joined.playback.audio_s) == (1.0, 1.0)


def test_pieces_may_be_files_of_their_own_or_bare_samples() -> None:
    files = AudioReceiver(keep=True)
    for _ in range(2):
        files.receive(build_header(8000, 4) + b"abcd", at_s=1.0, begins=True)
    assert bytes(files.samples) == b"abcdabcd"
    assert files.rate == 8000
    bare = AudioReceiver(keep=True)
    bare.receive(b"RI", at_s=1.0)
    bare.receive(b"cheese", at_s=1.0)
    assert bytes(bare.samples) == b"RIcheese"
    assert bare.rate == 24_000


def test_sound_that_cannot_be_measured_is_refused() -> None:
    stereo = bytearray(build_header(8000, 4))
    stereo[22] = 2
    with pytest.raises(ValueError, match="2 channels"):
        AudioReceiver().receive(bytes(stereo) + b"abcd", at_s=1.0)


def test_percentiles_are_values_that_were_seen_and_need_enough_of_them() -> None:
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile([float(n) for n in range(1, 101)], 95) == 95.0
    assert percentile([], 50) is None
    assert percentiles([1.0] * 99)["p99"] is None
    assert percentiles([1.0] * 98 + [7.0, 9.0])["p99"] == 7.0


@pytest.mark.parametrize("limit", [0, 3, 24, 25, 26, 99, 100, 101, 637, 1200, 5000])
def test_the_search_finds_the_most_that_pass_within_its_fineness(limit: int) -> None:
    asked: list[int] = []

    def passes(number: int) -> bool:
        asked.append(number)
        return number <= limit

    found = find_largest_passing(passes, first=25, most=1200, fineness=0.05)
    if limit < 25:
        assert found == 0
    else:
        assert min(limit, 1200) / 1.06 - 1 <= found <= min(limit, 1200)
    assert max(asked) <= 1200
    assert len(asked) <= 14


@pytest.mark.parametrize("audio_format", ["wav", "pcm"])
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.usefixtures("at_once")
def test_clients_hear_all_audio_and_ask_different_things(
    server: Served, backend: FakeBackend, audio_format: str, streaming: bool
) -> None:
    asked = query(server, audio_format=audio_format, streaming=streaming)
    seen = run_load(Load("closed", asked, 3, 60.0, requests=7, first_number=100), processes=2)
    row = summarise_speech(seen)
    assert (row["requests"], row["failed"], row["underruns"]) == (7, 0, 0)
    for record in seen.records:
        assert record.audio_s == pytest.approx(3 * PATCH_S, abs=1e-3)
        assert record.ttfa_s is not None
        assert 0 < record.ttfa_s <= record.took_s
    seeds = {request.voice.seed for request in backend.requests}
    assert len(seeds) == 7
    assert min(seeds) >= 100


@pytest.mark.alone
def test_clients_begin_together_however_long_their_processes_start(server: Served) -> None:
    records = run_load(Load("closed", query(server), 4, 60.0, requests=4), processes=4).records
    began = [record.began_s for record in records]
    # Four processes that import side by side are apart by more.
    assert max(began) - min(began) < 0.2


def test_an_open_loop_asks_at_its_rate_however_slow_the_answers(
    server: Served, backend: FakeBackend
) -> None:
    backend.script = playing(AudioDelta(tone()), Finished("stop", Usage()), pause=0.4)
    seen = run_load(Load("open", query(server), 40.0, 1.0), processes=2)
    began = [record.began_s for record in seen.records]
    assert 20 <= len(began) <= 65
    assert max(began) - min(began) <= 1.0
    assert summarise_speech(seen)["failed"] == 0


def test_a_listener_asks_again_when_the_playback_has_ended(
    server: Served, backend: FakeBackend
) -> None:
    seen = run_load(Load("listeners", query(server), 4, 2.5, ramp_s=0.4), processes=2)
    row = summarise_speech(seen)
    assert (row["failed"], row["underruns"]) == (0, 0)
    # 0.96 s each: three beginnings for everybody within 2.5 s.
    assert len(seen.records) == 4 * 3
    for record in seen.records:
        assert record.left_s == pytest.approx(3 * PATCH_S, abs=0.2)


@pytest.mark.usefixtures("at_once")
def test_late_audio_is_an_underrun(server: Served, backend: FakeBackend) -> None:
    pieces = [AudioDelta(tone())] * 3
    backend.script = playing(*pieces, Finished("stop", Usage()), pause=PATCH_S + 0.1)
    (record,) = run_load(Load("closed", query(server), 1, 60.0, requests=1), 1).records
    assert record.underruns == 2
    assert record.dry_s == pytest.approx(0.2, abs=0.1)


@pytest.mark.usefixtures("at_once")
def test_every_failure_is_counted_by_its_reason(server: Served, backend: FakeBackend) -> None:
    backend.script = playing(then=Overloaded("full"))
    row = summarise_speech(run_load(Load("closed", query(server), 2, 60.0, requests=4), 1))
    assert (row["requests"], row["failed"], row["failures"]) == (4, 4, {"429": 4})
    backend.script = playing(AudioDelta(tone()), then=Overloaded("full"))
    (cut,) = run_load(Load("closed", query(server), 1, 60.0, requests=1), 1).records
    assert cut.error is not None
    assert cut.audio_s > 0
    backend.script = playing(Finished("stop", Usage()))
    (mute,) = run_load(Load("closed", query(server), 1, 60.0, requests=1), 1).records
    assert mute.error == "an answer without audio"


@pytest.mark.usefixtures("at_once")
def test_the_command_writes_one_file_with_everything(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "result.json"
    command = f"speech_serving --url {server.url} --clients 1,2 --requests 3 --warm-up 1"
    monkeypatch.setattr(sys, "argv", [*command.split(), "--out", str(out)])
    assert speech.main() == 0
    result = json.loads(out.read_text())
    assert [row["amount"] for row in result["rows"]] == [1, 2]
    assert all(len(row["records"]) == 3 for row in result["rows"])
    assert len(result["record_columns"]) == len(result["rows"][0]["records"][0])
    assert result["environment"]["commit"]
    assert result["query"]["model"] == "org/ming"
