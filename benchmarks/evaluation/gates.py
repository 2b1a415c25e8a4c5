"""Regression gates: the worst of five calibrated runs, with slack.

    python -m benchmarks.evaluation.gates calibrate RUN RUN RUN RUN RUN --out ci/gates/NAME.json
    python -m benchmarks.evaluation.gates check RUN --gates ci/gates/NAME.json

A RUN is the folder of a run, or one with the folders of several (`ci/bench.sh` makes 23). A gate
applies to one protocol on one system, and fails for another. Its file has, for every number, the
worst value, the limit and the coefficient of variation of the runs (sample deviation over mean),
which shows the noise. A limit that no run could miss (no right answer, no word understood) is not a
gate. Any failed request fails a check, unless a calibrated run had as many.

`--steady` leaves out times and rates, which other load on a shared machine changes. It keeps
failures, accuracy, word errors, and the growth of throughput from one client to the largest number
of clients; of these only what varied by at most a tenth from run to run.

`check` returns 1 if a gate is not met, 2 if a number is missing, and 3, without a check, if the run
was made on another machine than the gates.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks.evaluation.report.figures import Figure, figures_of, find_runs, read_result

MIN_RUNS = 5
SLACK = 0.10
MAX_VARIATION = 0.10
"""The largest coefficient of variation of a gate with `--steady`."""
ALL_WORDS_WRONG = 100.0  # percent
NOT_MET, MISSING, OTHER_MACHINE = 1, 2, 3
GROWTH = "requests, by those of closed/1"
HIGHER_IS_BETTER = ("requests", "text out", "speech out", "accuracy", GROWTH)
STEADY = ("failed", "accuracy", "word errors, corpus", "word errors, mean of items", GROWTH)

Key = tuple[str, str, str, str]
Json = dict[str, Any]


class SystemMismatch(ValueError):
    """A run has another protocol, or was made on another system."""


@dataclass(frozen=True)
class Gate:
    """The limit of one number of one load."""

    protocol: str
    measure: str
    load: str
    hardware: str
    worst: float
    limit: float
    variation: float
    runs: int

    def is_met(self, value: float) -> bool:
        """Return whether a value meets the limit."""
        return value >= self.limit if is_higher_better(self.measure) else value <= self.limit


def is_higher_better(measure: str) -> bool:
    """Return whether higher values of a measure are better."""
    return measure in HIGHER_IS_BETTER


def calibrate(runs: Sequence[Sequence[Figure]], slack: float = SLACK) -> list[Gate]:
    """Make gates from the figures of five or more runs.

    Raises:
        ValueError: There are fewer than five runs.
        SystemMismatch: The runs are not of one protocol and system.
    """
    if len(runs) < MIN_RUNS:
        raise ValueError(f"{len(runs)} runs are too few: {MIN_RUNS} calibrate a gate")
    tables = [_by_key(run) for run in runs]
    if any(set(table) != set(tables[0]) for table in tables):
        raise SystemMismatch("the runs are not of one protocol and system, or lack numbers")
    gates = [_gate(key, [table[key] for table in tables], slack) for key in tables[0]]
    return [gate for gate in gates if not is_trivial(gate)]


def is_trivial(gate: Gate) -> bool:
    """Return whether only chance can miss the gate.

    That is so if no answer was right, or no word was understood.
    """
    if gate.measure.startswith("word errors"):
        return gate.limit >= ALL_WORDS_WRONG
    return is_higher_better(gate.measure) and gate.limit <= 0


def _gate(key: Key, values: Sequence[float], slack: float) -> Gate:
    high, mean = is_higher_better(key[1]), fmean(values)
    worst = min(values) if high else max(values)
    limit = worst * (1 - slack if high else 1 + slack)
    variation = stdev(values) / mean if mean else 0.0
    return Gate(*key, worst, limit, variation, len(values))


def _by_key(figures: Sequence[Figure]) -> dict[Key, float]:
    return {
        (figure.protocol, figure.measure, figure.load, figure.hardware): figure.value
        for figure in figures
    }


def check(gates: Sequence[Gate], figures: Sequence[Figure]) -> Iterator[tuple[Gate, float, bool]]:
    """Yield every gate with its value and whether it is met.

    Raises:
        SystemMismatch: The run lacks the number of a gate.
    """
    values = _by_key(figures)
    for gate in gates:
        key = gate.protocol, gate.measure, gate.load, gate.hardware
        if key not in values:
            raise SystemMismatch(
                f"the run has no {gate.measure} of {gate.protocol} on {gate.hardware}"
            )
        yield gate, values[key], gate.is_met(values[key])


def measure_growth(figures: Sequence[Figure]) -> Iterator[Figure]:
    """Yield, for each protocol, by how much many clients raise the rate of one client.

    "Many" is the largest number of clients that was measured. Only closed loops count. A slower
    machine slows both rates.
    """
    loops = [
        figure
        for figure in figures
        if figure.measure == "requests" and figure.load.startswith("closed/")
    ]
    protocols: dict[tuple[str, str], list[Figure]] = {}
    for figure in loops:
        protocols.setdefault((figure.protocol, figure.hardware), []).append(figure)
    for rates in protocols.values():
        fewest_clients, most_clients = min(rates, key=_clients), max(rates, key=_clients)
        if _clients(fewest_clients) == 1 and _clients(most_clients) > 1 and fewest_clients.value:
            yield replace(
                most_clients,
                measure=GROWTH,
                unit="",
                value=most_clients.value / fewest_clients.value,
                deviation=None,
            )


def _clients(figure: Figure) -> int:
    return int(figure.load.removeprefix("closed/"))


@dataclass(frozen=True)
class MeasuredRun:
    """The figures of a run, or of a folder of runs, and the machine that made them."""

    figures: tuple[Figure, ...]
    machine: Json


def read_measured(path: Path, steady: bool = False) -> MeasuredRun:
    """Read the figures in a folder.

    Raises:
        FileNotFoundError: The folder has no runs.
        SystemMismatch: The runs were made on several machines.
    """
    results = [(read_result(run), run.name) for run in find_runs([path])]
    if not results:
        raise FileNotFoundError(f"no runs in {path}")
    figures = [figure for result, name in results for figure in figures_of(result, name)]
    figures += measure_growth(figures)
    kept = (figure for figure in figures if not steady or figure.measure in STEADY)
    return MeasuredRun(tuple(kept), _one_machine([_machine(result) for result, _ in results]))


def _machine(result: Json) -> Json:
    return {name: result["environment"][name] for name in ("device", "devices")}


def _one_machine(machines: Sequence[Json]) -> Json:
    if any(machine != machines[0] for machine in machines):
        raise SystemMismatch("the runs were made on several machines")
    return machines[0]


def _calibrate(arguments: argparse.Namespace) -> int:
    measured = [read_measured(path, arguments.steady) for path in arguments.runs]
    machine = _one_machine([run.machine for run in measured])
    gates = calibrate([run.figures for run in measured], arguments.slack)
    if arguments.steady:
        noisy = [gate for gate in gates if gate.variation > MAX_VARIATION]
        gates = [gate for gate in gates if gate not in noisy]
        for gate in noisy:
            print(f"no gate, varies by {gate.variation:.1%}: {_gate_name(gate)}")
    rows = ",\n".join(json.dumps(asdict(gate), ensure_ascii=False) for gate in gates)
    head = f'"slack": {arguments.slack}, "machine": {json.dumps(machine)}'
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(f'{{{head}, "gates": [\n{rows}\n]}}\n', encoding="utf-8")
    for gate in gates:
        print(f"{_gate_name(gate)} {gate.limit:10.3f}  CV {gate.variation:.1%}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    stored = json.loads(arguments.gates.read_text(encoding="utf-8"))
    run = read_measured(arguments.run)
    if run.machine != stored["machine"]:
        gates_machine, run_machine = (
            f"{machine['devices']} x {machine['device']}"
            for machine in (stored["machine"], run.machine)
        )
        print(
            f"not checked: the gates in {arguments.gates} are for {gates_machine}, "
            f"the run is from {run_machine}"
        )
        return OTHER_MACHINE
    checked = list(check([Gate(**machine) for machine in stored["gates"]], run.figures))
    for gate, value, is_met in checked:
        comparison = ">=" if is_higher_better(gate.measure) else "<="
        outcome = "ok    " if is_met else "FAILED"
        print(f"{outcome} {_gate_name(gate)} {value:10.3f} {comparison} {gate.limit:.3f}")
    num_missed = sum(not is_met for _, _, is_met in checked)
    print(f"{len(checked) - num_missed} of {len(checked)} gates are met")
    return NOT_MET if num_missed else 0


def _gate_name(gate: Gate) -> str:
    return f"{gate.protocol.partition(',')[0]:60.60} {gate.load:10} {gate.measure:30}"


def main(command: Sequence[str] | None = None) -> int:
    """Calibrate or check. Return 1 if a gate is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    modes = parser.add_subparsers(required=True)
    calibrating = modes.add_parser("calibrate", help="make gates from five or more runs")
    calibrating.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    calibrating.add_argument("--slack", type=float, default=SLACK, help="a fraction")
    calibrating.add_argument("--steady", action="store_true", help="no times and no rates")
    calibrating.add_argument("--out", type=Path, required=True)
    calibrating.set_defaults(do=_calibrate)
    checking = modes.add_parser("check", help="check a run against its gates")
    checking.add_argument("run", type=Path, metavar="RUN")
    checking.add_argument("--gates", type=Path, required=True)
    checking.set_defaults(do=_check)
    arguments = parser.parse_args(command)
    try:
        return int(arguments.do(arguments))
    except (ValueError, KeyError, OSError) as error:
        print(f"gates: {error}", file=sys.stderr)
        return MISSING


if __name__ == "__main__":
    raise SystemExit(main())
