"""`python -m tests.hostile.fuzz --seconds 3600 --seed 1`: fuzz the server, then say what was found.

A case that fails is kept in a file, which `--replay` plays again and which can be put into
`corpus/`, whose cases the tests play.
"""

import argparse
import sys
import time
from pathlib import Path

from tests.hostile.fuzz.campaign import TARGETS, Report, fuzzed, play_all, run_target
from tests.hostile.fuzz.case import Finding, read_case


def main() -> int:
    """Return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--target", choices=TARGETS, action="append", help="default: all")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="folder for cases")
    parser.add_argument("--replay", type=Path, nargs="+", help="play these files instead")
    given = parser.parse_args()
    return replay(given.replay) if given.replay else fuzz(given)


def replay(paths: list[Path]) -> int:
    """Play kept cases."""
    with fuzzed() as server:
        found = play_all(server, [read_case(path) for path in paths])
    for case, finding in found:
        print(f"{case.target} {case.about}: {finding}")
    return 1 if found else 0


def fuzz(given: argparse.Namespace) -> int:
    """Fuzz one target after the other, each with a fresh server."""
    targets, failed = given.target or list(TARGETS), False
    for target in targets:
        print(f"{target}: seed {given.seed}", flush=True)
        seconds = given.seconds / len(targets)
        try:
            with fuzzed() as server:
                report = run_target(server, target, given.seed, seconds, given.first)
        except Finding as finding:
            print(f"{target}: FAILED: {finding}", flush=True)
            failed = True
            continue
        show(target, given, report)
        failed = failed or bool(report.found)
    return 1 if failed else 0


def show(target: str, given: argparse.Namespace, report: Report) -> None:
    """Print what came of a target, and keep the cases that failed."""
    print(
        f"{target}: {report.num_cases} cases in {report.seconds:.0f} s, memory grew by "
        f"{report.growth_bytes / 2**20:.1f} MiB, the ordinary client waited "
        f"{report.slowest_wait_s:.2f} s at most, {len(report.found)} failed",
        flush=True,
    )
    for one in report.found:
        given.keep.mkdir(parents=True, exist_ok=True)
        path = given.keep / f"{target}-{given.seed}-{one.number}.case"
        one.case.write(path)
        print(f"{path}: {one.finding}\n{one.case.data[:2000]!r}")


if __name__ == "__main__":
    sys.exit(main())
