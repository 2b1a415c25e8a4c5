"""Simulate many callers on many cards, from times that were measured on one.

    python -m benchmarks.cluster_sim check
    python -m benchmarks.cluster_sim plan --first-audio 0.4 --callers 1000 10000 100000
    python -m benchmarks.cluster_sim trace --file arrivals.jsonl --first-audio 0.4

`check` puts the simulation beside the measured loads of one H200, and fails if a figure is off by
more than 15 %. `plan` searches how many callers a group of cards carries, and prints the cards for
so many callers. `trace` answers the turns of a file on each group: lines with `at` in seconds,
`prompt` and `tokens`, `speech_s` and `heard_s`.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cluster.agreement import WITHIN, compare
from benchmarks.cluster.planning import Capacity, find_capacity, known_plans
from benchmarks.cluster.system import Outcome, arrivals
from benchmarks.cluster.workload import Habits, read_trace
from measurement.environment import fingerprint

CALLERS = (100, 1_000, 10_000, 100_000)


def check(_: argparse.Namespace) -> tuple[dict[str, Any], int]:
    """Print measured and simulated figures. Returns them, and 1 if one is off."""
    compared = compare()
    for one in compared:
        print(f"{one.load:30} {one.figure:26} {one.measured:8.1f} {one.simulated:8.1f}", end=" ")
        print(f"{one.off:+6.1%}")
    off = [one for one in compared if abs(one.off) > WITHIN]
    print(f"{len(compared) - len(off)} of {len(compared)} within {WITHIN:.0%}")
    return {"compared": [{**vars(one), "off": one.off} for one in compared]}, int(bool(off))


def plan(args: argparse.Namespace) -> tuple[dict[str, Any], int]:
    """Print the cards that so many callers need, in each kind of group."""
    habits = Habits(answer_s=args.answer, question_s=args.question, pause_s=args.pause)
    rows = []
    for group in known_plans():
        found = find_capacity(group, args.first_audio, habits)
        if found is None:
            print(f"{group.name}: not within {args.first_audio} s for one caller")
            continue
        rows.append(_planned(found, args.callers))
        carried = f"{found.callers} callers, {_spoken(found.outcome)}"
        print(f"{group.name}: {carried}, cards busy {_shares(found.outcome)}")
        for callers in args.callers:
            print(f"  {callers:>7,} callers: {_cards(found, callers)}")
    return {"habits": vars(habits), "first_audio_s": args.first_audio, "groups": rows}, 0


def trace(args: argparse.Namespace) -> tuple[dict[str, Any], int]:
    """Print what the turns of a file get from each kind of group."""
    turns = read_trace(args.file)
    rows, status = [], 1
    for group in known_plans():
        found = arrivals(group, turns, turns[-1][0] + args.settle)
        in_time = found.turns == len(turns) and found.first_audio[2] <= args.first_audio
        status = 0 if in_time else status
        print(f"{group.name}: {found.turns} of {len(turns)} turns, {_spoken(found)}", end=", ")
        print("in time" if in_time else "too late")
        rows.append({"group": group.name, **vars(found)})
    return {"groups": rows}, status


def _planned(found: Capacity, callers: Sequence[int]) -> dict[str, Any]:
    groups = {str(count): found.groups(count) for count in callers}
    cards = list(found.plan.cards)
    outcome = vars(found.outcome)
    return {"group": found.plan.name, "cards": cards, "callers": found.callers, "groups": groups,
            "outcome": outcome}  # fmt: skip


def _cards(found: Capacity, callers: int) -> str:
    groups, kinds = found.groups(callers), found.plan.cards
    counts = {kind: groups * kinds.count(kind) for kind in sorted(set(kinds), reverse=True)}
    return " and ".join(f"{count:,} {kind}" for kind, count in counts.items())


def _spoken(outcome: Outcome) -> str:
    _, half, most = outcome.first_audio
    gaps = f"{outcome.with_gaps:.2%} with gaps"
    return f"first audio {1000 * half:.0f} ms (half) and {1000 * most:.0f} ms (95 %), {gaps}"


def _shares(outcome: Outcome) -> str:
    return ", ".join(f"{share:.0%}" for share in outcome.busy)


def main() -> int:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="JSON of what is printed")
    commands = parser.add_subparsers(required=True)
    commands.add_parser("check").set_defaults(run=check)
    planning = commands.add_parser("plan")
    planning.set_defaults(run=plan)
    planning.add_argument("--callers", type=int, nargs="+", default=CALLERS)
    planning.add_argument("--answer", type=float, default=Habits.answer_s, help="mean seconds")
    planning.add_argument("--question", type=float, default=Habits.question_s, help="mean seconds")
    planning.add_argument("--pause", type=float, default=Habits.pause_s, help="mean seconds")
    tracing = commands.add_parser("trace")
    tracing.set_defaults(run=trace)
    tracing.add_argument("--file", type=Path, required=True)
    tracing.add_argument("--settle", type=float, default=60.0, help="seconds after the last turn")
    for one in (planning, tracing):
        one.add_argument(
            "--first-audio", type=float, default=0.4, help="seconds, of 95 %% of turns"
        )
    args = parser.parse_args()
    report, status = args.run(args)
    if args.out:
        args.out.write_text(json.dumps({**report, "environment": fingerprint()}, indent=1) + "\n")
    return int(status)


if __name__ == "__main__":
    raise SystemExit(main())
