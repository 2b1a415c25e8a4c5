"""Print runs as tables beside published numbers, and plot them.

    python -m benchmarks.evaluation.report RUN... [--plots FOLDER] [--without-published]

A RUN is a folder of `benchmarks.evaluation.evaluate`, or a file of `benchmarks.serving.chats` or
`benchmarks.thinker.decoding`; a folder of such folders stands for all of them. Each protocol has a
table of its own. `--one-column` puts everything in one table, and fails where protocols differ.
Published numbers are as their authors give them (`published.json` has the source of each); they
were not measured here.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.evaluation.report import figures, plots
from benchmarks.evaluation.report.tables import MixedProtocols, format_table, format_tables


def main(command: Sequence[str] | None = None) -> int:
    """Print tables and draw plots. Return 2 if protocols are mixed or a file is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw PNG files there")
    parser.add_argument("--without-published", action="store_true")
    parser.add_argument("--one-column", action="store_true", help="one table for everything")
    arguments = parser.parse_args(command)
    shown = [] if arguments.without_published else list(figures.read_published())
    try:
        for path in figures.find_runs(arguments.runs):
            result = figures.read_result(path)
            shown += figures.figures_of(result, path.name)
            if arguments.plots and "protocol" in result:
                for drawn in plots.draw_plots(result, arguments.plots, path.name):
                    print(drawn, file=sys.stderr)
        print((format_table if arguments.one_column else format_tables)(shown))
    except (MixedProtocols, plots.MatplotlibMissing, OSError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
