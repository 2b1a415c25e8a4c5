"""Reports compare what can be compared, and nothing else."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.client.target import Target
from benchmarks.evaluation.protocol.presets import PRESETS
from benchmarks.evaluation.protocol.record import record_to_json
from benchmarks.evaluation.protocol.run import RunConfig
from benchmarks.evaluation.protocol.summary import summarise_pass, summarise_repeats
from benchmarks.evaluation.report import __main__, figures, plots
from benchmarks.evaluation.report.figures import Figure
from benchmarks.evaluation.report.tables import MixedProtocols, format_table, format_tables
from tests.benchmarks.evaluation.test_protocol import one

FIGURE = Figure("requests", "req/s", "closed/1", 2.0, "a protocol", "one", "a card", "here")


def run_file(preset: str, **about: Any) -> dict[str, Any]:
    """The file of a made-up run of speech under two loads."""
    (chosen,) = PRESETS[preset]
    target = Target("http://127.0.0.1:1", "m", streaming=chosen.streaming)
    config = RunConfig(chosen.task, "hub", chosen.samples, chosen.loads, 2, 0, target, preset)
    records, rows = [], []
    for load in ("closed/1", "closed/4"):
        passes = []
        for repeat in range(2):
            made = [
                one(f"s{n}", load=load, repeat=repeat, ttfa_s=0.1 * (n + 1), audio_s=2.0)
                for n in range(3)
            ]
            made.append(one("s3", load=load, repeat=repeat, error="TimeoutError"))
            records += made
            passes.append(summarise_pass(made, []))
        rows.append({"load": load, "repeats": passes, "over_repeats": summarise_repeats(passes)})
    return {
        "protocol": config.protocol,
        "config": config.as_json() | {"system": "a laptop"},
        "environment": {"device": "cpu", "devices": "0"},
        "summary": rows,
        "records": [record_to_json(row) for row in records],
        **about,
    }


def test_rows_of_two_protocols_are_never_in_one_column() -> None:
    other = replace(FIGURE, protocol="another")
    with pytest.raises(MixedProtocols, match="'a protocol' and 'another'"):
        format_table([FIGURE, other])
    both = format_tables([FIGURE, other])
    assert both.count("### ") == 2
    assert both.count("| requests (req/s) |") == 2


def test_a_table_has_a_column_for_each_load_in_order() -> None:
    loads = [replace(FIGURE, load=f"closed/{count}", value=count) for count in (16, 2, 4)]
    spread = replace(FIGURE, system="two", load="closed/4", value=1234.5, deviation=12.25)
    lines = format_table([*loads, spread]).splitlines()
    assert lines[0] == "| | system | hardware | source | closed/2 | closed/4 | closed/16 |"
    assert lines[2] == "| requests (req/s) | one | a card | here | 2 | 4 | 16 |"
    assert lines[3] == "| requests (req/s) | two | a card | here |  | 1,234 ± 12.2 |  |"


def test_every_published_row_says_whose_on_what_and_from_where() -> None:
    rows = list(figures.read_published())
    assert len(rows) > 30
    for row in rows:
        assert row.system
        assert row.hardware
        assert row.source
        assert row.protocol
        assert row.value > 0


@pytest.mark.parametrize("preset", ["mmmu-50", "seed-tts-en-whole", "seed-tts-en-streamed"])
def test_a_preset_stands_beside_the_rows_it_repeats(preset: str) -> None:
    ours = list(figures.figures_of(run_file(preset), "run"))
    theirs = {row.protocol for row in figures.read_published()}
    assert {one.protocol for one in ours} & theirs
    together = [row for row in figures.read_published() if row.protocol == ours[0].protocol]
    shown = format_table([one for one in ours if one.protocol == ours[0].protocol] + together)
    assert "| this project | a laptop |" in shown
    assert "| sglang-omni |" in shown


def test_what_is_not_known_of_a_protocol_keeps_it_apart() -> None:
    ours = {one.protocol for one in figures.figures_of(run_file("gsm8k-100"), "run")}
    assert not ours & {row.protocol for row in figures.read_published()}
    bundled = run_file("mmmu-50")
    config = bundled["config"] | {"source": "fixture"}
    made = RunConfig(**(config | {"target": Target("", "m", streaming=False)}))
    assert made.protocol.endswith("bundled, whole answers")


def test_words_by_another_listener_are_another_protocol() -> None:
    result = run_file("seed-tts-en-whole", recogniser="whisper (large-v3)")
    for row in result["summary"]:
        row["over_repeats"]["words.wer_mean"] = {"mean": 0.02, "sd": None}
    found = [
        one for one in figures.figures_of(result, "run") if one.measure.startswith("word errors")
    ]
    assert found[0].value == 2.0
    assert found[0].protocol.endswith("heard by whisper (large-v3)")


def test_the_command_prints_and_draws(tmp_path: Path, capsys: Any) -> None:
    stage = {"name": "thinker", "began_s": 0.01, "first_s": 0.02, "ended_s": None}
    result = run_file("seed-tts-en-streamed", timelines=[{"seconds": 0.5, "stages": [stage]}])
    folder = tmp_path / "runs" / "tts"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(result), encoding="utf-8")
    assert __main__.main([str(tmp_path / "runs"), "--plots", str(tmp_path / "plots")]) == 0
    shown = capsys.readouterr().out
    assert "| failed | this project | a laptop | tts | 1 ± 0 | 1 ± 0 |" in shown
    assert "| speech out (audio-s/s) | sglang-omni | 3 x H200 |" in shown
    drawn = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert drawn == ["tts-load.png", "tts-timeline.png", "tts-ttfa.png"]
    for path in (tmp_path / "plots").iterdir():
        # Something is drawn: more than background and one colour of ink.
        assert len(Image.open(path).convert("RGB").getcolors(1 << 20) or []) > 20


def test_the_command_refuses_to_mix_and_says_what_is_missing(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert __main__.main(["--one-column"]) == 2
    assert "one table cannot hold" in capsys.readouterr().err
    assert __main__.main([str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(plots.MatplotlibMissing, match="pip install matplotlib"):
        plots.draw_plots(run_file("seed-tts-en-streamed"), tmp_path, "x")
