"""A trace as plain data, and as a chart for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sglang_omni.observability.trace import Trace

NUM_COLUMNS = 48
# Stages that run beside others, and what they do meanwhile.
BESIDE = {
    "decode": "runs beside thinker: it makes text of the tokens",
    "segment": "runs beside thinker and talker: it cuts the text into fragments to speak",
}


def trace_to_dict(trace: Trace, now: float) -> dict[str, Any]:
    """Return a trace with its times in seconds since the arrival.

    `now`, on the monotonic clock, is the end of a request in progress.
    """

    def since_start(seconds: float | None) -> float | None:
        return None if seconds is None else seconds - trace.started_at

    return {
        "id": trace.id,
        "given_id": trace.given_id,
        "route": trace.route,
        "status": trace.status,
        "began_at": trace.started_at_epoch,
        "ended": trace.ended_at is not None,
        "seconds": since_start(trace.ended_at or now),
        "first_text_s": since_start(trace.first_text_at),
        "sound": None if trace.playback is None else vars(trace.playback),
        "stages": [
            {
                "name": span.name,
                "began_s": since_start(span.started_at),
                "first_s": since_start(span.first_output_at),
                "ended_s": since_start(span.ended_at),
                "outputs": span.num_outputs,
                "error": span.error,
                "replica": span.replica,
                "node": span.node,
            }
            for span in trace.spans
        ],
        "stages_left_out": trace.num_dropped_spans,
    }


def draw_timeline(timeline: Mapping[str, Any]) -> list[str]:
    """Return the lines of a chart with a bar for each stage and `|` at its first output.

    Below it stands which stage took longest, and which ran beside others.
    """
    total_s = max(timeline["seconds"], 1e-9)
    status = timeline["status"] or ("gone" if timeline["ended"] else "in progress")
    lines = [f"{timeline['id']}  {timeline['route']}  {status}  {total_s:.3f} s", ""]
    stages = timeline["stages"]
    if stages:
        lines.append(_draw_axis(total_s))
    lines += [_draw_stage(stage, total_s) for stage in stages]
    if timeline["stages_left_out"]:
        lines.append(f"... and {timeline['stages_left_out']} more")
    return [*lines, *_describe_stages(stages, total_s), *_describe_playback(timeline["sound"])]


def _draw_axis(total_s: float) -> str:
    numbers = f"{'from':>8} {'took':>8}  {'':12} {'':6}"
    end = f"{total_s:.3f} s"
    return f"{'':14} {numbers} {'0':{NUM_COLUMNS - len(end)}}{end}"


def _describe_stages(stages: Sequence[Mapping[str, Any]], total_s: float) -> Iterator[str]:
    """Yield a line about the stage that took longest, and one for each that ran beside others."""
    names = dict.fromkeys(stage["name"] for stage in stages)
    took = {
        name: sum(_get_duration(stage, total_s) for stage in stages if stage["name"] == name)
        for name in names
        if name not in BESIDE
    }
    if took:
        yield ""
        longest = max(took, key=lambda name: took[name])
        yield f"longest: {longest}, {took[longest]:.3f} of {total_s:.3f} s"
    yield from (f"{name} {BESIDE[name]}" for name in names if name in BESIDE)


def _get_duration(stage: Mapping[str, Any], total_s: float) -> float:
    ended_s: float = total_s if stage["ended_s"] is None else stage["ended_s"]
    began_s: float = stage["began_s"]
    return ended_s - began_s


def _draw_stage(stage: Mapping[str, Any], total_s: float) -> str:
    started_s = stage["began_s"]
    ended_s = total_s if stage["ended_s"] is None else stage["ended_s"]
    first = "" if stage["first_s"] is None else f"first {stage['first_s'] - started_s:.3f}"
    outputs = f"x{stage['outputs']}" if stage["outputs"] else ""
    took_s = _get_duration(stage, total_s)
    numbers = f"{started_s:8.3f} {took_s:8.3f}  {first:12} {outputs:6}"
    bar = _draw_bar(stage, ended_s, total_s)
    notes = " ".join(filter(None, (stage["error"], _describe_replica(stage))))
    return f"{stage['name']:14} {numbers} {bar} {notes}".rstrip()


def _describe_replica(stage: Mapping[str, Any]) -> str:
    """Return which replica served a stage and on which other machine; "" for the first here."""
    replica, node = stage.get("replica"), stage.get("node")
    where = f"on {node}" if node else ""
    return " ".join(filter(None, (f"replica {replica}" if replica else "", where)))


def _draw_bar(stage: Mapping[str, Any], ended_s: float, total_s: float) -> str:
    def to_column(seconds: float) -> int:
        return min(NUM_COLUMNS - 1, int(seconds / total_s * NUM_COLUMNS))

    bar = [" "] * NUM_COLUMNS
    for column in range(to_column(stage["began_s"]), to_column(ended_s) + 1):
        bar[column] = "="
    if stage["first_s"] is not None:
        bar[to_column(stage["first_s"])] = "|"
    return "".join(bar)


def _describe_playback(playback: Mapping[str, float] | None) -> Sequence[str]:
    if playback is None:
        return []
    text = (
        f"{playback['audio_s']:.2f} s of speech, the first after {playback['first_s']:.3f} s, "
        f"RTF {playback['rtf']:.3f}, {playback['underrun_s']:.3f} s of underruns"
    )
    return ["", text]
