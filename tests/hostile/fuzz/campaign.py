"""Sends cases to a server for some time, and finds out which one made it fail."""

import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.entrypoints.http.fake import FakeBackend, Served
from tests.hostile.clients import bystander
from tests.hostile.fuzz import http_framing, media_headers, schemas, websocket_frames
from tests.hostile.fuzz.case import Case, Finding

ROOT = Path(__file__).parents[3]
BATCH, AT_ONCE = 64, 8
# Caches fill and the allocator keeps some; a leak passes this within minutes.
MAX_GROWTH_BYTES = 192 << 20
# What the server must not log. Its level is `warning`; what is malformed is not worth an error.
BAD_LINES = re.compile(rb"Traceback|^ERROR|^CRITICAL|never retrieved|never awaited", re.MULTILINE)
# A decoding process or the grammar checker that a case has ended is what they are there for.
HELPERS = re.compile(rb"^(ERROR|WARNING):sglang_omni\.engine\..*$", re.MULTILINE)


@dataclass(frozen=True)
class Target:
    """How cases of one kind are made and played."""

    make: Callable[[random.Random], Case]
    play: Callable[[Served, Case], None]


MODULES = (http_framing, websocket_frames, schemas, media_headers)
TARGETS = {module.TARGET: Target(module.make, module.play) for module in MODULES}


@dataclass
class Fuzzed:
    """The server, and what is seen of it from outside."""

    served: Served
    process: "subprocess.Popen[str]"
    log: Path
    log_place: int = 0
    peak_bytes: int = 0

    def check(self) -> None:
        """Raise `Finding` where the server's log, or its end, tells of a fault."""
        if self.process.poll() is not None:
            raise Finding(f"the server ended with {self.process.returncode}")
        text = self.log.read_bytes()[self.log_place :]
        self.log_place += len(text)
        rest = HELPERS.sub(b"", text)
        if BAD_LINES.search(rest):
            raise Finding(f"the server's log says:\n{rest.decode(errors='replace')[-4000:]}")

    def resident_bytes(self) -> int:
        """Memory of the server's process."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()


@contextmanager
def fuzzed() -> Iterator[Fuzzed]:
    """Run the server that is fuzzed."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [sys.executable, "-m", "tests.hostile.fuzz.server"]
        with (
            log.open("wb") as stderr,
            subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr, text=True
            ) as process,
        ):
            try:
                assert process.stdout is not None
                port = process.stdout.readline()
                assert port, log.read_text()
                yield Fuzzed(Served(f"http://127.0.0.1:{int(port)}", FakeBackend()), process, log)
            finally:
                process.terminate()


def case_of(target: str, seed: int, number: int) -> Case:
    """The case of that number: the same in every run."""
    return TARGETS[target].make(random.Random(f"{target}:{seed}:{number}"))


def play(server: Fuzzed, case: Case) -> None:
    """Play one case. Raises `Finding`."""
    try:
        TARGETS[case.target].play(server.served, case)
    except (httpx.HTTPError, OSError) as error:
        raise Finding(f"no answer: {type(error).__name__}: {error}") from error


def play_all(server: Fuzzed, cases: Sequence[Case]) -> list[tuple[Case, Finding]]:
    """Play cases, some at a time, and return those that the server failed at."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = [one for one in pool.map(lambda case: _try(server, case), cases) if one]
    try:
        server.check()
    except Finding as finding:
        found = found or _find_guilty(server, cases, finding)
    return found


def _try(server: Fuzzed, case: Case) -> tuple[Case, Finding] | None:
    try:
        play(server, case)
    except Finding as finding:
        return case, finding
    return None


def _find_guilty(
    server: Fuzzed, cases: Sequence[Case], finding: Finding
) -> list[tuple[Case, Finding]]:
    """Play cases one by one until the log tells of a fault again; all are guilty if it does not."""
    for case in cases:
        if server.process.poll() is not None:
            break
        try:
            play(server, case)
            time.sleep(0.05)
            server.check()
        except Finding as again:
            return [(case, again)]
    return [(case, finding) for case in cases]


@dataclass(frozen=True)
class Found:
    """A case that the server failed at, and how."""

    number: int
    case: Case
    finding: Finding


@dataclass(frozen=True)
class Report:
    """What came of some time of fuzzing."""

    num_cases: int
    seconds: float
    growth_bytes: int
    slowest_wait_s: float
    found: list[Found]


def run_target(server: Fuzzed, target: str, seed: int, seconds: float, first: int = 0) -> Report:
    """Fuzz for so long, or to the first finding, beside an ordinary client who must be served well.

    Raises `Finding` where that client was not, or memory was kept.
    """
    started, waits = time.monotonic(), [0.0]
    # The first batch loads what is loaded on first use.
    number, found = _run_batch(server, target, seed, first)
    before = server.resident_bytes()
    try:
        with bystander(server.served) as other:
            waits = other.waits
            while time.monotonic() - started < seconds and not found:
                number, found = _run_batch(server, target, seed, number)
    except AssertionError as badly_served:
        # What was found in the server says more.
        if not found:
            raise Finding(f"the ordinary client was served badly: {badly_served}") from None
    growth = server.resident_bytes() - before
    if growth > MAX_GROWTH_BYTES and not found:
        raise Finding(f"{growth >> 20} MiB are kept after {number - first} cases")
    return Report(number - first, time.monotonic() - started, growth, max(waits), found)


def _run_batch(server: Fuzzed, target: str, seed: int, first: int) -> tuple[int, list[Found]]:
    """Play the next cases; returns the number of the one after them, and what was found."""
    cases = [case_of(target, seed, first + one) for one in range(BATCH)]
    guilty = play_all(server, cases)
    found = [Found(first + cases.index(case), case, finding) for case, finding in guilty]
    return first + BATCH, found
