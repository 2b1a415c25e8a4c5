"""A trace as plain data, and as lines to look at in a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from sglang_omni.observability.trace import Trace

COLUMNS = 48


def as_json(trace: Trace, now: float) -> dict[str, Any]:
    """A trace with its times in seconds since the arrival. `now` ends what has not ended."""
    began = trace.started_at
    return {
        "id": trace.id,
        "route": trace.route,
        "status": trace.status,
        "began_at": trace.began_at,
        "ended": trace.ended is not None,
        "seconds": (trace.ended or now) - began,
        "first_text_s": None if trace.first_text is None else trace.first_text - began,
        "sound": None if trace.sound is None else vars(trace.sound),
        "stages": [
            {
                "name": span.name,
                "began_s": span.started_at - began,
                "first_s": None if span.first is None else span.first - began,
                "ended_s": None if span.ended is None else span.ended - began,
                "outputs": span.outputs,
                "error": span.error,
            }
            for span in trace.spans
        ],
        "stages_left_out": trace.spans_left_out,
    }


def draw(timeline: Mapping[str, Any]) -> list[str]:
    """Lines of a chart: a bar for each stage, `|` at its first output."""
    whole = max(timeline["seconds"], 1e-9)
    status = timeline["status"] or ("gone" if timeline["ended"] else "under way")
    lines = [f"{timeline['id']}  {timeline['route']}  {status}  {whole:.3f} s", ""]
    lines += [_line(stage, whole) for stage in timeline["stages"]]
    if timeline["stages_left_out"]:
        lines.append(f"... and {timeline['stages_left_out']} more")
    return [*lines, *_sound(timeline["sound"])]


def _line(stage: Mapping[str, Any], whole: float) -> str:
    ended = whole if stage["ended_s"] is None else stage["ended_s"]
    first = "" if stage["first_s"] is None else f"first {stage['first_s'] - stage['began_s']:.3f}"
    outputs = f"x{stage['outputs']}" if stage["outputs"] else ""
    numbers = f"{stage['began_s']:8.3f} {ended - stage['began_s']:8.3f}  {first:12} {outputs:6}"
    return (
        f"{stage['name']:14} {numbers} {_bar(stage, ended, whole)} {stage['error'] or ''}".rstrip()
    )


def _bar(stage: Mapping[str, Any], ended: float, whole: float) -> str:
    def place(seconds: float) -> int:
        return min(COLUMNS - 1, int(seconds / whole * COLUMNS))

    bar = [" "] * COLUMNS
    for column in range(place(stage["began_s"]), place(ended) + 1):
        bar[column] = "="
    if stage["first_s"] is not None:
        bar[place(stage["first_s"])] = "|"
    return "".join(bar)


def _sound(sound: Mapping[str, float] | None) -> Sequence[str]:
    if sound is None:
        return []
    about = (
        f"{sound['audio_s']:.2f} s of speech, the first after {sound['first_s']:.3f} s, "
        f"RTF {sound['rtf']:.3f}, {sound['underrun_s']:.3f} s of silence where speech was due"
    )
    return ["", about]
