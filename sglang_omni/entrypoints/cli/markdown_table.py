"""Renders tables in Markdown."""

from collections.abc import Iterable


def render_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Render a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_format_cell, line))} |" for line in lines) + "\n"


def _format_cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
