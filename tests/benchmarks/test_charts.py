"""The charts of the documents show the numbers of today's result files."""

import html
import json
import re
from pathlib import Path

import pytest

from benchmarks.charts import CHARTS, main

DOCUMENTS = Path(__file__).parents[2] / "docs" / "charts"


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_in_the_documents_is_that_of_the_result_files(name: str) -> None:
    drawn = html.unescape((DOCUMENTS / f"{name}.svg").read_text(encoding="utf-8"))
    (numbers,) = re.findall(r"<dc:description>(.*?)</dc:description>", drawn, re.DOTALL)
    assert json.loads(numbers) == json.loads(CHARTS[name]().numbers)


def test_charts_have_a_bar_for_each_group() -> None:
    for build in CHARTS.values():
        chart = build()
        assert all(len(series.values) == len(chart.groups) for series in chart.series)
        assert all(value >= 0 for series in chart.series for value in series.values)


def test_they_are_drawn_the_same_again(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for folder in ("one", "two"):
        main(["--output", str(tmp_path / folder)])
    for name in CHARTS:
        one, two = ((tmp_path / folder / f"{name}.svg").read_bytes() for folder in ("one", "two"))
        assert one == two
        assert len(one) > 5_000
