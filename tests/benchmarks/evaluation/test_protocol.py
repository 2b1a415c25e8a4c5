"""Runs ask every sample once, whatever cuts them off, and count what failed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.client import target
from benchmarks.client.load import ClientShare
from benchmarks.client.target import Target
from benchmarks.evaluation import evaluate
from benchmarks.evaluation.protocol.journal import Journal, RunMismatch, read_journal
from benchmarks.evaluation.protocol.passes import LoadPlan
from benchmarks.evaluation.protocol.presets import PRESETS
from benchmarks.evaluation.protocol.record import SampleRecord, record_from_json, record_to_json
from benchmarks.evaluation.protocol.run import Run, RunConfig
from benchmarks.evaluation.protocol.summary import accuracy, summarise_pass, summarise_repeats
from benchmarks.evaluation.tasks import TASKS
from measurement.intervals import wilson_interval
from sglang_omni.pipeline.request import ChatRequest, Finished, TextDelta, TextPart
from sglang_omni.protocol.errors import Overloaded
from tests.entrypoints.http.fake import USAGE, Served, echo, playing, serving

pytestmark = pytest.mark.alone


@pytest.fixture
def server() -> Iterator[Served]:
    with serving() as served:
        yield served


def one(sample: str = "s", **values: Any) -> SampleRecord:
    empty: dict[str, Any] = {
        "load": "closed/1",
        "repeat": 0,
        "sample": sample,
        "sitting": 0,
        "began_s": 0.0,
        "took_s": 1.0,
        "audio_s": 0.0,
        "underruns": 0,
        "dry_s": 0.0,
        "left_s": 0.0,
        "prompt_tokens": 7,
        "tokens": 10,
    }
    return record_from_json(empty | values)


def config(url: str, **values: Any) -> RunConfig:
    own: dict[str, Any] = {"task": "gsm8k/chat-0-shot", "source": "fixture", "samples": 6}
    own |= {"loads": ("closed/2", "open/50"), "repeats": 2, "warm_up": 1} | values
    return RunConfig(target=Target(url, "org/ming"), **own)


def questions(served: Served) -> list[str]:
    """What the server was asked, without a warm-up of one request."""
    texts = []
    for request in served.backend.requests[1:]:
        assert isinstance(request, ChatRequest)
        part = request.messages[-1].content[0]
        assert isinstance(part, TextPart)
        texts.append(part.text)
    return texts


def test_a_run_asks_every_sample_in_every_pass_and_writes_one_file(
    server: Served, tmp_path: Path
) -> None:
    run = Run(config(server.url), tmp_path)
    run.generate()
    result = run.finish()
    written = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(result))
    asked = questions(server)
    assert len(asked) == 6 * 2 * 2
    assert {asked.count(text) for text in asked} == {4}
    assert [row["load"] for row in result["summary"]] == ["closed/2", "open/50"]
    assert len(result["records"]) == 24
    assert result["environment"]["commit"]
    for row in result["summary"]:
        for done in row["repeats"]:
            assert (done["requests"], done["failed"], done["interrupted"]) == (6, 0, False)
            assert done["ttft_ms"]["mean"] > 0
            assert done["ttft_ms"]["p99"] is None
            assert len(done["clients"]) == 1
        rates = [done["requests_per_s"] for done in row["repeats"]]
        assert row["over_repeats"]["requests_per_s"]["mean"] == pytest.approx(sum(rates) / 2)
        assert row["over_repeats"]["requests_per_s"]["sd"] == pytest.approx(
            abs(rates[0] - rates[1]) / 2**0.5
        )


def test_right_answers_are_right(server: Served, tmp_path: Path) -> None:
    truths = [str(sample.truth) for sample in TASKS["gsm8k/chat-0-shot"].samples("fixture", 2)]

    async def script(request: Any) -> Any:
        asked = request.messages[-1].content[0].text
        question = TASKS["gsm8k/chat-0-shot"].samples("fixture", 1)[0].request
        assert isinstance(question, target.ChatRequest)
        (part,) = question.parts
        assert isinstance(part, target.TextPart)
        first = part.text
        yield TextDelta(truths[0] if asked == first else "It is 999999.")
        yield Finished("stop", USAGE)

    server.backend.script = script
    run = Run(config(server.url, samples=2, loads=("closed/1",), repeats=1), tmp_path)
    run.generate()
    (row,) = run.finish()["summary"][0]["repeats"]
    assert (row["accuracy"]["right"], row["accuracy"]["items"]) == (1, 2)
    assert tuple(row["accuracy"]["interval"]) == pytest.approx(wilson_interval(1, 2))


def test_a_failed_request_is_counted_and_wrong(server: Served, tmp_path: Path) -> None:
    server.backend.script = playing(then=Overloaded("full"))
    guesses = config(
        server.url, task="mmmu/lmms-eval", samples=None, loads=("closed/2",), repeats=1
    )
    run = Run(guesses, tmp_path)
    run.generate()
    (row,) = run.finish()["summary"][0]["repeats"]
    assert (row["requests"], row["failed"], row["failures"]) == (12, 12, {"429": 12})
    assert row["accuracy"]["right"] == 0
    assert row["accuracy"]["items"] == 12


def test_speech_without_audio_has_failed(server: Served, tmp_path: Path) -> None:
    server.backend.script = playing(TextDelta("hm"), Finished("stop", USAGE))
    silent = config(server.url, task="modality/text-to-speech", samples=1, loads=("closed/1",))
    run = Run(replace(silent, repeats=1), tmp_path)
    run.generate()
    (row,) = run.finish()["summary"][0]["repeats"]
    assert row["failures"] == {"an answer without audio": 1}


def test_a_run_that_was_killed_goes_on_where_it_was(server: Served, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks.evaluation.evaluate",
        "--task",
        "gsm8k/chat-0-shot",
    ]
    command += ["--clients", "2", "--samples", "12", "--repeats", "2", "--warm-up", "1"]
    command += ["--url", server.url, "--out", str(tmp_path)]
    server.backend.script = playing(TextDelta("1"), Finished("stop", USAGE), pause=0.05)
    journal = tmp_path / "journal.jsonl"
    killed = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not journal.is_file() or journal.read_text().count('"sample"') < 7:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
    with journal.open("a") as file:
        file.write('{"load": "closed/2", "repeat": 1, "sam')
    before = journal.read_text().count('"sample"')
    assert 7 <= before < 24
    server.backend.script = echo
    assert evaluate.main(command[3:]) == 0
    result = json.loads((tmp_path / "run.json").read_text())
    keys = [(row["load"], row["repeat"], row["sample"]) for row in result["records"]]
    assert len(keys) == len(set(keys)) == 24
    assert sum(row["sitting"] == 0 for row in result["records"]) == before
    interrupted = [done["interrupted"] for done in result["summary"][0]["repeats"]]
    assert interrupted == [before < 12, before > 12]
    asked = len(server.backend.requests)
    assert evaluate.main(command[3:]) == 0
    assert len(server.backend.requests) == asked


def test_a_folder_of_another_run_is_refused(server: Served, tmp_path: Path) -> None:
    run = Run(config(server.url, samples=1), tmp_path)
    run.generate()
    other = Run(config(server.url, samples=1, repeats=3), tmp_path)
    with pytest.raises(RunMismatch, match="repeats"):
        other.generate()
    moved = replace(run.config, target=replace(run.config.target, url="http://127.0.0.1:1"))
    Run(moved, tmp_path).generate()


def test_a_file_is_not_written_before_all_is_there(server: Served, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="24 samples of 24"):
        Run(config(server.url), tmp_path).finish()


def test_a_journal_gives_back_what_it_was_given(tmp_path: Path) -> None:
    path, made = tmp_path / "journal.jsonl", {"task": "a", "loads": ("closed/1",)}
    first = one("a", text="he said\n“no”", right=False, how="none", ttft_s=0.12345678)
    share = ClientShare(0.5, 0.01, 0.02)
    with Journal(path, made) as journal:
        journal.add(first)
        journal.end_pass("closed/1", 0, share)
    with Journal(path, made) as journal:
        assert journal.sitting == 1
        journal.add(one("b", sitting=1))
    stored = read_journal(path, made)
    assert stored.sittings == 2
    assert stored.clients == {("closed/1", 0): [share]}
    assert list(stored.records) == [("closed/1", 0, "a"), ("closed/1", 0, "b")]
    assert asdict(stored.records["closed/1", 0, "a"]) == asdict(first) | {"ttft_s": 0.1235}
    assert record_from_json(record_to_json(first)) == replace(first, ttft_s=0.1235)


def test_the_time_of_a_pass_is_that_of_its_sittings() -> None:
    whole = [one("a", began_s=0.0, took_s=2.0), one("b", began_s=2.0, took_s=2.0)]
    assert summarise_pass(whole, [])["tokens_per_s"] == pytest.approx(20 / 4)
    parted = [whole[0], one("b", began_s=0.0, took_s=3.0, sitting=1)]
    row = summarise_pass(parted, [])
    assert row["interrupted"]
    assert row["seconds"] == pytest.approx(5.0)


def test_accuracy_counts_guesses_failures_and_groups_apart() -> None:
    rows = [
        one("a", right=True, how="parsed", group="Art"),
        one("b", right=True, how="guessed", group="Art"),
        one("c", right=False, how="none", group="Math"),
        one("d", right=False, how="none", group="Math", error="TimeoutError"),
    ]
    found = accuracy(rows)
    assert (found["right"], found["items"], found["guessed"], found["unparsed"]) == (2, 4, 1, 2)
    assert found["groups"] == {"Art": 1.0, "Math": 0.0}


def test_repeats_have_a_mean_and_a_sample_deviation() -> None:
    found = summarise_repeats([{"a": {"p50": 1.0}, "b": None}, {"a": {"p50": 3.0}, "b": 2.0}])
    assert found == {"a.p50": {"mean": 2.0, "sd": pytest.approx(2**0.5)}}
    assert summarise_repeats([{"a": 1}]) == {"a": {"mean": 1.0, "sd": None}}


def test_loads_and_presets_are_what_they_say() -> None:
    assert LoadPlan.of("open/2.5") == LoadPlan("open", 2.5)
    for wrong in ("closed", "half/2", "closed/0"):
        with pytest.raises(ValueError, match=r"a load is closed|could not convert"):
            LoadPlan.of(wrong)
    for made in PRESETS.values():
        for preset in made:
            assert preset.task in TASKS
            assert [LoadPlan.of(load) for load in preset.loads]
    (mmmu,) = PRESETS["mmmu-50"]
    assert (mmmu.samples, mmmu.warm_up, mmmu.repeats) == (50, 16, 3)
    assert len(PRESETS["smoke"]) == 8
