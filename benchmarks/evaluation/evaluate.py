"""Ask any server of OpenAI's API the questions of a benchmark, under load, and judge its answers.

    python -m benchmarks.evaluation.evaluate --preset mmmu-50 --data hub --out runs/mmmu
    python -m benchmarks.evaluation.evaluate --task gsm8k/lm-eval-flexible --data DIR \\
        --clients 8 --out runs/gsm8k
    python -m benchmarks.evaluation.evaluate --task sweep/text --rate 4 --repeats 3 --out runs/open
    python -m benchmarks.evaluation.evaluate --preset seed-tts-en-streamed --data DIR \\
        --out runs/tts --recogniser whisper --weights DIR
    python -m benchmarks.evaluation.report runs/mmmu runs/gsm8k ...

Every run has a folder. Each answer is written to it at once, and the same command continues where
it was interrupted. `run.json` has the configuration, environment, summary and every record. The
recogniser transcribes speech only after all of it was made. Failed requests are counted, never
left out.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.client.target import DIALECTS, Target, UnsupportedRequest
from benchmarks.evaluation.datasets.source import FIXTURE, DatasetError
from benchmarks.evaluation.metrics.recognisers import LISTENERS, Listener, NoRecogniser
from benchmarks.evaluation.metrics.similarity import Voices
from benchmarks.evaluation.protocol import presets
from benchmarks.evaluation.protocol.journal import OtherRun, read
from benchmarks.evaluation.protocol.listening import clones, compare, listen
from benchmarks.evaluation.protocol.passes import LoadPlan
from benchmarks.evaluation.protocol.run import Json, Run, RunConfig
from benchmarks.evaluation.tasks import TASKS
from benchmarks.serving.speech import parse_counts
from benchmarks.serving.speech_summary import format_percentiles
from measurement.openai_api import served_model


def parse(command: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--preset", choices=presets.names(), metavar="NAME", help="see --list")
    what.add_argument("--task", choices=sorted(TASKS), metavar="TASK/VARIANT", help="see --list")
    what.add_argument("--list", action="store_true", help="print presets and tasks, and end")
    parser.add_argument("--out", type=Path, help="the folder of the run")
    parser.add_argument("--data", default=FIXTURE, help="fixture, hub, hub:OWNER/NAME or a folder")
    parser.add_argument("--samples", type=int, help="only the first so many")
    parser.add_argument("--clients", type=parse_counts, default=[], help="closed loop, such as 1,4")
    parser.add_argument("--rate", type=float, action="append", default=[], help="open loop, req/s")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=2, help="requests before, not counted")
    parser.add_argument("--whole", action="store_true", help="ask for whole answers, not streams")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", help="the served model, asked for when left out")
    parser.add_argument("--dialect", choices=DIALECTS, default="ours", help="whose API it is")
    parser.add_argument("--voice")
    parser.add_argument("--key-variable", help="the environment variable that holds the key")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one request")
    parser.add_argument("--system", default="", help="what serves, for tables: cards, precision")
    parser.add_argument("--recogniser", choices=sorted(LISTENERS), help="who hears the speech")
    parser.add_argument("--weights", type=Path, help="the folder of the recogniser's weights")
    parser.add_argument("--speaker-network", type=Path, help="campplus.onnx, to compare voices")
    arguments = parser.parse_args(command)
    if not arguments.list and arguments.out is None:
        parser.error("give --out")
    if arguments.task and not (arguments.clients or arguments.rate):
        parser.error("give --clients or --rate with --task")
    return arguments


def configs(arguments: argparse.Namespace) -> Iterator[tuple[RunConfig, Path]]:
    """The runs that are asked for, each with its folder. A preset is run as it is; only where rows
    come from and who serves is free."""
    if arguments.task:
        loads = [f"closed/{clients}" for clients in arguments.clients]
        loads += [f"open/{rate:g}" for rate in arguments.rate]
        own = presets.Preset(
            "",
            arguments.task,
            tuple(LoadPlan.of(load).name for load in loads),
            arguments.samples,
            arguments.repeats,
            arguments.warm_up,
            not arguments.whole,
        )
        yield _config(own, arguments), arguments.out
        return
    chosen = presets.PRESETS[arguments.preset]
    for preset in chosen:
        out = arguments.out if len(chosen) == 1 else arguments.out / preset.name
        yield _config(preset, arguments), out


def _config(preset: presets.Preset, arguments: argparse.Namespace) -> RunConfig:
    target = Target(
        arguments.url,
        arguments.model,
        arguments.dialect,
        preset.streaming,
        arguments.voice,
        arguments.key_variable,
        arguments.timeout,
    )
    return RunConfig(
        preset.task,
        arguments.data,
        preset.samples,
        preset.loads,
        preset.repeats,
        preset.warm_up,
        target,
        preset.name or None,
        arguments.system,
    )


def evaluate(
    config: RunConfig, folder: Path, listener: Listener | None, voices: Voices | None = None
) -> Json:
    """Make a run, or what is missing of it; returns what is in its file."""
    run = Run(config, folder)
    run.generate()
    records = list(read(folder / "journal.jsonl", config.as_json()).records.values())
    about: Json = {}
    if voices is not None and clones(run.samples):
        about["similarity"] = compare(folder, records, run.samples, voices)
    language = run.task.language
    if listener is None or language is None:
        return run.finish(None, about)
    heard, rows = listen(folder, records, run.samples, listener, language)
    return run.finish(heard, about | {"recogniser": listener.name, "heard": rows})


def _listener(arguments: argparse.Namespace, language: str) -> Listener | None:
    """Who hears this language; None, which is said, where the recogniser does not know it."""
    made = LISTENERS[arguments.recogniser]
    if language not in made.languages:
        print(f"{arguments.recogniser} hears no {language}: that speech is not judged")
        return None
    return made(arguments.weights, language)


def show(result: Json) -> None:
    """Print a few lines: what one looks for first."""
    print(result["protocol"])
    for row in result["summary"]:
        for one in row["repeats"]:
            line = f"  {row['load']:9} failed {one['failed']} of {one['requests']}"
            line += f"  {one['requests_per_s']:.2f} req/s  {one['tokens_per_s']:.1f} tok/s"
            line += f"  TTFT p50/p95/p99 {format_percentiles(one['ttft_ms'])} ms"
            if one["audio_s_per_s"]:
                line += f"  TTFA {format_percentiles(one['ttfa_ms'])} ms"
                line += f"  {one['audio_s_per_s']:.1f} audio-s/s"
                line += f"  underruns {one['underruns']}"
            if judged := one.get("accuracy"):
                low, high = judged["interval"]
                line += f"  right {judged['share']:.1%} [{low:.1%}, {high:.1%}]"
            if words := one.get("words"):
                line += f"  word errors {words['wer_corpus_with_failed']:.1%}"
            print(line, flush=True)
    if alike := result.get("similarity"):
        print(f"  similarity ({alike['by']}) {alike['mean']}, failed {alike['failed']}")


def catalogue() -> str:
    """Every preset and every task, a line each."""
    lines = ["presets:"]
    for name in presets.names():
        made = presets.PRESETS[name]
        tasks = ", ".join(one.task for one in made[:3]) + (", ..." if len(made) > 3 else "")
        lines.append(f"  {name:22} {tasks}")
    return "\n".join([*lines, "tasks:", *(f"  {name}" for name in sorted(TASKS))])


def main(command: Sequence[str] | None = None) -> int:
    """Run, print and write; fails when a request failed, or a run could not be made."""
    arguments = parse(command)
    if arguments.list:
        print(catalogue())
        return 0
    failed = 0
    listeners: dict[str, Listener | None] = {}
    try:
        voices = Voices(arguments.speaker_network) if arguments.speaker_network else None
        arguments.model = arguments.model or served_model(arguments.url)
        for config, folder in configs(arguments):
            language = TASKS[config.task].language
            if arguments.recogniser and language and language not in listeners:
                listeners[language] = _listener(arguments, language)
            result = evaluate(config, folder, listeners.get(language or ""), voices)
            show(result)
            failed += sum(one["failed"] for row in result["summary"] for one in row["repeats"])
    except (DatasetError, UnsupportedRequest, NoRecogniser, OtherRun, OSError) as error:
        print(f"evaluate: {error}", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
