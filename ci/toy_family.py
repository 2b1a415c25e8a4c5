"""Run the suites of the pipeline, the API and the realtime API on the toy family, in both ways.

    python ci/toy_family.py                    # all of them
    python ci/toy_family.py tests/pipeline     # what pytest takes instead

Fails unless every test that runs on Ming passes on the toy family, which the registry finds, and
then an entry point. Only tests of rules for reading, which the family does not have, are skipped,
and those of programs and packages that are not here, which do not run on Ming either.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.testing.family_under_test import FAMILIES, SUITES, VARIABLE, WITHOUT_RULES

ROOT = Path(__file__).parents[1]
WAYS = tuple(name for name in FAMILIES if name != "ming")
# Both ways run beside each other, so that times say nothing.
MARKERS = "not alone and not faults and not soak and not long and not extended and not browser"


def start_pytest(family: str, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start pytest on a family; what it prints goes into a file."""
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-rs", "-m", MARKERS, *arguments]
    env = {**os.environ, VARIABLE: family}
    with log.open("wb") as output:
        return subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output)


def find_count(printed: str, what: str) -> int:
    """Return a number from the last line of pytest: "1228 passed", "1228/1312 tests collected"."""
    found = re.search(rf"^(\d+)(/\d+)? {what}\b", printed, re.MULTILINE)
    return int(found[1]) if found else 0


def count_expected_skips(printed: str) -> int:
    """Return how many tests pytest says that it skipped for want of rules or of a program."""
    reason = rf"(?:{re.escape(WITHOUT_RULES)}|there is no .* here)"
    found = re.findall(rf"^SKIPPED \[(\d+)\] .*: {reason}$", printed, re.MULTILINE)
    return sum(map(int, found))


def main() -> int:
    """Run the suites; return the exit status."""
    arguments = sys.argv[1:] or list(SUITES)
    has_failed = False
    with tempfile.TemporaryDirectory() as folder:
        logs = {name: Path(folder, name) for name in FAMILIES}
        start_pytest("ming", logs["ming"], "--collect-only", *arguments).wait()
        printed = logs["ming"].read_text(encoding="utf-8")
        if not (num_tests := find_count(printed, "tests collected")):
            sys.exit(printed)
        began = time.monotonic()
        running = {way: start_pytest(way, logs[way], *arguments) for way in WAYS}
        for way, process in running.items():
            status = process.wait()
            printed = logs[way].read_text(encoding="utf-8")
            num_passed = find_count(printed, "passed") + count_expected_skips(printed)
            took_s = time.monotonic() - began
            if status or num_passed != num_tests:
                has_failed = True
                print(printed)
            print(f"{way}: {num_passed} of {num_tests} tests as expected in {took_s:.0f} s")
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
