"""Gates against regressions: the worst of five calibrated runs, with slack.

    python -m benchmarks.evaluation.gates calibrate RUN RUN RUN RUN RUN --out ci/gates/NAME.json
    python -m benchmarks.evaluation.gates check RUN --gates ci/gates/NAME.json

A RUN is the folder of a run, or one with the folders of several (`ci/bench.sh` makes 23). A gate
holds for one protocol on one system, and is refused for another. Its file has, for every number,
the worst value, the gate behind it and the coefficient of variation (sample deviation by mean) of
the runs, so that one sees what is noise. What no run could miss (no answer was right, no word was
understood) is no gate. Any failed request fails a check, unless a calibrated run
had as many. `--steady` leaves out times and rates, which other work on a shared machine changes,
and keeps failures, accuracy, word errors, and by how much the throughput of one client grows with
the most of them; of all these only what varied by at most a tenth from run to run, for the rest is
noise. `check` ends with 1 where a gate is not met, with 2 where a number is missing, and with 3,
having checked nothing, where the run was made on another machine than the gates.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks.evaluation.report.figures import Figure, of, read, runs

LEAST_RUNS = 5
SLACK = 0.10
NOISE = 0.10
"""A coefficient of variation."""
NOTHING_HEARD = 100.0  # percent
NOT_MET, NO_ANSWER, OTHER_MACHINE = 1, 2, 3
GROWTH = "requests, by those of closed/1"
HIGHER_IS_BETTER = ("requests", "text out", "speech out", "accuracy", GROWTH)
STEADY = ("failed", "accuracy", "word errors, corpus", "word errors, mean of items", GROWTH)

Key = tuple[str, str, str, str]
Json = dict[str, Any]


class OtherSystem(ValueError):
    """A run is of another protocol, or was made on another system."""


@dataclass(frozen=True)
class Gate:
    """What one number of one load may not be worse than."""

    protocol: str
    measure: str
    load: str
    hardware: str
    worst: float
    limit: float
    variation: float
    runs: int

    def holds(self, value: float) -> bool:
        """Whether a value passes."""
        return value >= self.limit if better_high(self.measure) else value <= self.limit


def better_high(measure: str) -> bool:
    """Whether more of a measure is better."""
    return measure in HIGHER_IS_BETTER


def calibrate(several: Sequence[Sequence[Figure]], slack: float = SLACK) -> list[Gate]:
    """Gates from the figures of five runs or more. Raises `ValueError` for fewer, `OtherSystem`
    where they are not of one protocol and system."""
    if len(several) < LEAST_RUNS:
        raise ValueError(f"{len(several)} runs are too few: {LEAST_RUNS} calibrate a gate")
    tables = [_by_key(run) for run in several]
    if any(set(table) != set(tables[0]) for table in tables):
        raise OtherSystem("the runs are not of one protocol and system, or lack numbers")
    gates = [_gate(key, [table[key] for table in tables], slack) for key in tables[0]]
    return [gate for gate in gates if not idle(gate)]


def idle(gate: Gate) -> bool:
    """Whether nothing can fail it, or only chance: a model that was never right, or was understood
    in no word."""
    if gate.measure.startswith("word errors"):
        return gate.limit >= NOTHING_HEARD
    return better_high(gate.measure) and gate.limit <= 0


def _gate(key: Key, values: Sequence[float], slack: float) -> Gate:
    high, mean = better_high(key[1]), fmean(values)
    worst = min(values) if high else max(values)
    limit = worst * (1 - slack if high else 1 + slack)
    variation = stdev(values) / mean if mean else 0.0
    return Gate(*key, worst, limit, variation, len(values))


def _by_key(figures: Sequence[Figure]) -> dict[Key, float]:
    return {(one.protocol, one.measure, one.load, one.hardware): one.value for one in figures}


def check(gates: Sequence[Gate], figures: Sequence[Figure]) -> Iterator[tuple[Gate, float, bool]]:
    """Every gate with the value that meets it. Raises `OtherSystem` where one has none."""
    values = _by_key(figures)
    for gate in gates:
        key = gate.protocol, gate.measure, gate.load, gate.hardware
        if key not in values:
            raise OtherSystem(
                f"the run has no {gate.measure} of {gate.protocol} on {gate.hardware}"
            )
        yield gate, values[key], gate.holds(values[key])


def growth(figures: Sequence[Figure]) -> Iterator[Figure]:
    """Of each protocol with closed loops of one client and of more: by how much the most clients
    raise its rate. A slower machine slows both."""
    loops = [one for one in figures if one.measure == "requests" and one.load.startswith("closed/")]
    protocols: dict[tuple[str, str], list[Figure]] = {}
    for one in loops:
        protocols.setdefault((one.protocol, one.hardware), []).append(one)
    for rates in protocols.values():
        least, most = min(rates, key=_clients), max(rates, key=_clients)
        if _clients(least) == 1 and _clients(most) > 1 and least.value:
            yield replace(
                most, measure=GROWTH, unit="", value=most.value / least.value, deviation=None
            )


def _clients(figure: Figure) -> int:
    return int(figure.load.removeprefix("closed/"))


@dataclass(frozen=True)
class Measured:
    """The figures of a run, or of a folder of runs, and the machine that they were made on."""

    figures: tuple[Figure, ...]
    machine: Json


def measured(path: Path, steady: bool = False) -> Measured:
    """What is in a folder. Raises `FileNotFoundError`, and `OtherSystem` for several machines."""
    results = [(read(run), run.name) for run in runs([path])]
    if not results:
        raise FileNotFoundError(f"no runs in {path}")
    figures = [figure for result, name in results for figure in of(result, name)]
    figures += growth(figures)
    kept = (figure for figure in figures if not steady or figure.measure in STEADY)
    return Measured(tuple(kept), _one_machine([_machine(result) for result, _ in results]))


def _machine(result: Json) -> Json:
    return {name: result["environment"][name] for name in ("device", "devices")}


def _one_machine(machines: Sequence[Json]) -> Json:
    if any(one != machines[0] for one in machines):
        raise OtherSystem("the runs were made on several machines")
    return machines[0]


def _calibrate(arguments: argparse.Namespace) -> int:
    found = [measured(path, arguments.steady) for path in arguments.runs]
    machine = _one_machine([one.machine for one in found])
    gates = calibrate([one.figures for one in found], arguments.slack)
    if arguments.steady:
        noisy = [gate for gate in gates if gate.variation > NOISE]
        gates = [gate for gate in gates if gate not in noisy]
        for gate in noisy:
            print(f"no gate, varies by {gate.variation:.1%}: {_named(gate)}")
    rows = ",\n".join(json.dumps(asdict(gate), ensure_ascii=False) for gate in gates)
    head = f'"slack": {arguments.slack}, "machine": {json.dumps(machine)}'
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(f'{{{head}, "gates": [\n{rows}\n]}}\n', encoding="utf-8")
    for gate in gates:
        print(f"{_named(gate)} {gate.limit:10.3f}  CV {gate.variation:.1%}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    stored = json.loads(arguments.gates.read_text(encoding="utf-8"))
    run = measured(arguments.run)
    if run.machine != stored["machine"]:
        theirs, ours = (
            f"{one['devices']} x {one['device']}" for one in (stored["machine"], run.machine)
        )
        print(f"not checked: {arguments.gates} is of {theirs}, the run of {ours}")
        return OTHER_MACHINE
    met = list(check([Gate(**one) for one in stored["gates"]], run.figures))
    for gate, value, holds in met:
        sign = ">=" if better_high(gate.measure) else "<="
        say = "ok    " if holds else "FAILED"
        print(f"{say} {_named(gate)} {value:10.3f} {sign} {gate.limit:.3f}")
    missed = sum(not holds for _, _, holds in met)
    print(f"{len(met) - missed} of {len(met)} gates are met")
    return NOT_MET if missed else 0


def _named(gate: Gate) -> str:
    return f"{gate.protocol.partition(',')[0]:60.60} {gate.load:10} {gate.measure:30}"


def main(command: Sequence[str] | None = None) -> int:
    """Calibrate or check; fails where a gate is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    modes = parser.add_subparsers(required=True)
    calibrating = modes.add_parser("calibrate", help="make gates of five runs or more")
    calibrating.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    calibrating.add_argument("--slack", type=float, default=SLACK, help="a fraction")
    calibrating.add_argument("--steady", action="store_true", help="no times and no rates")
    calibrating.add_argument("--out", type=Path, required=True)
    calibrating.set_defaults(do=_calibrate)
    checking = modes.add_parser("check", help="hold a run to its gates")
    checking.add_argument("run", type=Path, metavar="RUN")
    checking.add_argument("--gates", type=Path, required=True)
    checking.set_defaults(do=_check)
    arguments = parser.parse_args(command)
    try:
        return int(arguments.do(arguments))
    except (ValueError, KeyError, OSError) as error:
        print(f"gates: {error}", file=sys.stderr)
        return NO_ANSWER


if __name__ == "__main__":
    raise SystemExit(main())
