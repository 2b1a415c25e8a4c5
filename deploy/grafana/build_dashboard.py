"""Write the Grafana dashboard, `dashboard.json` beside this file.

python deploy/grafana/build_dashboard.py
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from panels import ROWS, Panel

Json = dict[str, Any]
PATH = Path(__file__).with_name("dashboard.json")
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT, STAT_HEIGHT = 24, 8, 4
GREEN, YELLOW, RED = "green", "orange", "red"


def build_dashboard() -> Json:
    """Return the dashboard."""
    variables = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
        {
            "name": "instance",
            "type": "query",
            "label": "Server",
            "datasource": SOURCE,
            "query": "label_values(sgl_omni_build_info, instance)",
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "current": {"text": "All", "value": "$__all"},
        },
    ]
    return {
        "title": "sglang-omni",
        "uid": "sglang-omni",
        "tags": ["sglang-omni"],
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "templating": {"list": variables},
        "panels": list(_place_rows()),
    }


def _place_rows() -> Iterator[Json]:
    top, number = 0, 0
    for title, panels in ROWS.items():
        number += 1
        place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place}
        top, left = top + 1, 0
        height = STAT_HEIGHT if panels[0].is_stat else HEIGHT
        for panel in panels:
            if left + panel.width > WIDTH:
                top, left = top + height, 0
            number += 1
            place = {"x": left, "y": top, "w": panel.width, "h": height}
            yield {"id": number, "gridPos": place, **build_panel(panel)}
            left += panel.width
        top += height


def build_panel(panel: Panel) -> Json:
    """Return a panel without its place."""
    defaults: Json = {"unit": panel.unit, "min": 0}
    if panel.maximum is not None:
        defaults["max"] = panel.maximum
    if panel.thresholds is not None:
        defaults["thresholds"] = {"mode": "absolute", "steps": _build_steps(panel.thresholds)}
    elif panel.is_stat:
        defaults["color"] = {"mode": "fixed", "fixedColor": "text"}
    options: Json = {"legend": {"displayMode": "list", "placement": "bottom"}}
    if panel.is_stat:
        text_mode = "name" if panel.unit == "none" else "value"
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "textMode": text_mode}
    elif panel.thresholds is not None:
        defaults["custom"] = {"thresholdsStyle": {"mode": "dashed"}}
    return {
        "type": "stat" if panel.is_stat else "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {"refId": chr(65 + index), "expr": query.text, "legendFormat": query.name}
            for index, query in enumerate(panel.queries)
        ],
    }


def _build_steps(thresholds: Sequence[float]) -> list[Json]:
    yellow, red = thresholds
    if red > yellow:
        steps = [(None, GREEN), (yellow, YELLOW), (red, RED)]
    else:
        steps = [(None, RED), (red, YELLOW), (yellow, GREEN)]
    return [{"value": value, "color": colour} for value, colour in steps]


if __name__ == "__main__":
    PATH.write_text(json.dumps(build_dashboard(), indent=1) + "\n", encoding="utf-8")
