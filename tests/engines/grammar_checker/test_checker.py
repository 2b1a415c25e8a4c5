"""Grammars are checked in a process that a hostile one may end, and nothing else ends with it."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from sglang_omni.engines.grammar_checker import checker as module
from sglang_omni.engines.grammar_checker.checker import CRASH_VERDICT, GrammarChecker, VerdictCache
from sglang_omni.engines.grammar_checker.contract import GrammarSettings, GrammarVerdict
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.sampling import Grammar, SamplingParams
from tests.testing.golden import TINY

SECRET = "nobody-logs-this"
# Unrolled into as many rules. The look at a schema would find it; here nobody looks.
HUNGRY = {"type": "array", "items": {"const": SECRET}, "minItems": 10**9}


def under(schema: Any) -> SamplingParams:
    return SamplingParams(json_schema=json.dumps(schema))


@pytest.fixture
async def checker() -> AsyncIterator[GrammarChecker]:
    made = GrammarChecker(GrammarSettings(TINY, cpu_seconds=2, memory_bytes=128 << 20))
    await made.start()
    yield made
    await made.stop()


async def test_good_ones_pass_once_and_bad_ones_are_refused_by_their_field(
    checker: GrammarChecker,
) -> None:
    await checker.check(SamplingParams())
    for _ in range(2):
        await checker.check(under({"type": "object"}))
        await checker.check(SamplingParams(grammar=Grammar('start: "a"', "tools")))
    with pytest.raises(InvalidRequest) as refused:
        await checker.check(SamplingParams(grammar=Grammar("start: nothing", "tools")))
    assert refused.value.param == "tools"
    with pytest.raises(InvalidRequest, match="no answer can match it") as refused:
        await checker.check(under({"$ref": "#"}))
    assert refused.value.param == "response_format"


async def test_one_that_ends_the_process_is_refused_and_the_next_is_served(
    checker: GrammarChecker, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    first, began = checker.process.pid, time.monotonic()
    with caplog.at_level(logging.DEBUG):
        hungry = asyncio.create_task(checker.check(under(HUNGRY)))
        await asyncio.sleep(0)
        behind = asyncio.create_task(checker.check(under({"type": "array"})))
        with pytest.raises(InvalidRequest, match="too much time or memory"):
            await hungry
        await behind
        assert checker.process.pid != first
        # It is known by now, and costs nobody another process.
        second = checker.process.pid
        with pytest.raises(InvalidRequest, match="too much time or memory"):
            await checker.check(under(HUNGRY))
        assert checker.process.pid == second
    assert time.monotonic() - began < 30
    assert SECRET not in caplog.text
    assert SECRET not in "".join(capfd.readouterr())


async def test_whoever_leaves_takes_nobody_along(checker: GrammarChecker) -> None:
    schema = under({"type": "object", "properties": {"a": {"type": "string"}}})
    leaving, staying = (asyncio.create_task(checker.check(schema)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await staying


async def test_a_flood_of_one_tenant_keeps_no_other_waiting(checker: GrammarChecker) -> None:
    def schema(number: int) -> SamplingParams:
        return under({"type": "object", "properties": {f"p{number}": {"type": "string"}}})

    order: list[str] = []

    async def check(number: int, tenant: str) -> None:
        await checker.check(schema(number), tenant)
        order.append(tenant)

    async with asyncio.TaskGroup() as group:
        for number in range(40):
            group.create_task(check(number, "flood"))
        await asyncio.sleep(0)
        group.create_task(check(40, "other"))
    assert order.index("other") <= 2


async def test_whoever_stops_waiting_leaves_no_work_behind(checker: GrammarChecker) -> None:
    schemas = [under({"type": "object", "title": str(number)}) for number in range(20)]
    waiting = [asyncio.create_task(checker.check(one, "flood")) for one in schemas]
    await asyncio.sleep(0)
    for task in waiting[1:]:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    counters = checker.process.health.counters
    await asyncio.sleep(1.5)
    assert checker.process.health.counters["checked"] <= counters.get("checked", 0) + 3


def test_verdicts_are_kept_by_use_and_fatal_ones_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    cache = VerdictCache(max_verdicts=2)
    cache.put(b"a", GrammarVerdict())
    cache.put(b"b", GrammarVerdict("bad"))
    assert cache.get(b"a") == GrammarVerdict()
    cache.put(b"c", CRASH_VERDICT)
    assert cache.get(b"b") is None
    assert cache.get(b"c") == CRASH_VERDICT
    now[0] = module.CRASH_VERDICT_TTL_S
    assert cache.get(b"c") is None
    assert cache.get(b"a") == GrammarVerdict()
