"""Markdown tables, each of one protocol."""

from collections.abc import Sequence

from benchmarks.evaluation.report.figures import Figure


class MixedProtocols(ValueError):
    """Numbers of different protocols are in one column."""


def format_table(figures: Sequence[Figure]) -> str:
    """Format a table: a row for each measure, system, hardware and source, a column for each load.

    Raises:
        MixedProtocols: The figures are of several protocols, which are not comparable.
    """
    protocols = sorted({figure.protocol for figure in figures})
    if len(protocols) > 1:
        raise MixedProtocols(f"one table cannot hold {' and '.join(map(repr, protocols))}")
    loads = sorted({figure.load for figure in figures}, key=_by_amount)
    rows: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for one in sorted(figures, key=lambda one: (one.measure, one.unit)):
        label = f"{one.measure} ({one.unit})" if one.unit else one.measure
        key = (label, one.system, one.hardware, one.source)
        rows.setdefault(key, {})[one.load] = _number(one)
    lines = ["| | system | hardware | source | " + " | ".join(loads) + " |"]
    lines.append("|---" * (4 + len(loads)) + "|")
    for about, values in rows.items():
        cells = [values.get(load, "") for load in loads]
        lines.append("| " + " | ".join([*about, *cells]) + " |")
    return "\n".join(lines)


def format_tables(figures: Sequence[Figure]) -> str:
    """Format a table for each protocol, under its name."""
    names = sorted({figure.protocol for figure in figures})
    parts = [
        f"### {name}\n\n{format_table([figure for figure in figures if figure.protocol == name])}"
        for name in names
    ]
    return "\n\n".join(parts)


def _by_amount(load: str) -> tuple[str, float]:
    kind, _, amount = load.partition("/")
    return kind, float(amount)


def _number(figure: Figure) -> str:
    def short(value: float) -> str:
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

    spread = f" ± {short(figure.deviation)}" if figure.deviation is not None else ""
    return short(figure.value) + spread
