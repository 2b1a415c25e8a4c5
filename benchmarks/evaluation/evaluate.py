r"""Ask any server of OpenAI's API the questions of a benchmark, under load, and judge its answers.

    python -m benchmarks.evaluation.evaluate --preset mmmu-50 --data hub --out runs/mmmu
    python -m benchmarks.evaluation.evaluate --task gsm8k/lm-eval-flexible --data DIR \
        --clients 8 --out runs/gsm8k
    python -m benchmarks.evaluation.evaluate --task sweep/text --rate 4 --repeats 3 --out runs/open
    python -m benchmarks.evaluation.evaluate --preset seed-tts-en-streamed --data DIR \
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
from benchmarks.evaluation.metrics.recognisers import (
    RECOGNISERS,
    RecogniserUnavailable,
    SpeechRecogniser,
)
from benchmarks.evaluation.metrics.similarity import SpeakerSimilarity
from benchmarks.evaluation.protocol import presets
from benchmarks.evaluation.protocol.journal import RunMismatch, read_journal
from benchmarks.evaluation.protocol.listening import clones_voices, compare_voices, transcribe_run
from benchmarks.evaluation.protocol.passes import LoadPlan
from benchmarks.evaluation.protocol.run import Json, Run, RunConfig
from benchmarks.evaluation.tasks import TASKS
from benchmarks.serving.speech import parse_counts
from benchmarks.serving.speech_summary import format_percentiles
from measurement.openai_api import served_model


def parse_arguments(command: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--preset", choices=presets.preset_names(), metavar="NAME", help="see --list")
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
    parser.add_argument("--recogniser", choices=sorted(RECOGNISERS), help="who hears the speech")
    parser.add_argument("--weights", type=Path, help="the folder of the recogniser's weights")
    parser.add_argument("--speaker-network", type=Path, help="campplus.onnx, to compare voices")
    arguments = parser.parse_args(command)
    if not arguments.list and arguments.out is None:
        parser.error("give --out")
    if arguments.task and not (arguments.clients or arguments.rate):
        parser.error("give --clients or --rate with --task")
    return arguments


def build_configs(arguments: argparse.Namespace) -> Iterator[tuple[RunConfig, Path]]:
    """Yield the requested runs, each with its folder.

    A preset is run as it is; only the source of the rows and the server can be chosen.
    """
    if arguments.task:
        loads = [f"closed/{clients}" for clients in arguments.clients]
        loads += [f"open/{rate:g}" for rate in arguments.rate]
        preset = presets.Preset(
            "",
            arguments.task,
            tuple(LoadPlan.of(load).name for load in loads),
            arguments.samples,
            arguments.repeats,
            arguments.warm_up,
            not arguments.whole,
        )
        yield _build_config(preset, arguments), arguments.out
        return
    presets_to_run = presets.PRESETS[arguments.preset]
    for preset in presets_to_run:
        out = arguments.out if len(presets_to_run) == 1 else arguments.out / preset.name
        yield _build_config(preset, arguments), out


def _build_config(preset: presets.Preset, arguments: argparse.Namespace) -> RunConfig:
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
    config: RunConfig,
    folder: Path,
    recogniser: SpeechRecogniser | None,
    similarity: SpeakerSimilarity | None = None,
) -> Json:
    """Run what is missing of a run, and return the content of its file."""
    run = Run(config, folder)
    run.generate()
    records = list(read_journal(folder / "journal.jsonl", config.as_json()).records.values())
    extra: Json = {}
    if similarity is not None and clones_voices(run.samples):
        extra["similarity"] = compare_voices(folder, records, run.samples, similarity)
    language = run.task.language
    if recogniser is None or language is None:
        return run.finish(None, extra)
    transcripts, rows = transcribe_run(folder, records, run.samples, recogniser, language)
    return run.finish(transcripts, extra | {"recogniser": recogniser.name, "heard": rows})


def _load_recogniser(arguments: argparse.Namespace, language: str) -> SpeechRecogniser | None:
    """Load the recogniser for a language.

    If it does not support the language, print a message and return None.
    """
    recogniser_class = RECOGNISERS[arguments.recogniser]
    if language not in recogniser_class.languages:
        print(f"{arguments.recogniser} does not support {language}: that speech is not judged")
        return None
    return recogniser_class(arguments.weights, language)


def print_result(result: Json) -> None:
    """Print the main results in a few lines."""
    print(result["protocol"])
    for row in result["summary"]:
        for repeat in row["repeats"]:
            line = f"  {row['load']:9} failed {repeat['failed']} of {repeat['requests']}"
            line += f"  {repeat['requests_per_s']:.2f} req/s  {repeat['tokens_per_s']:.1f} tok/s"
            line += f"  TTFT p50/p95/p99 {format_percentiles(repeat['ttft_ms'])} ms"
            if repeat["audio_s_per_s"]:
                line += f"  TTFA {format_percentiles(repeat['ttfa_ms'])} ms"
                line += f"  {repeat['audio_s_per_s']:.1f} audio-s/s"
                line += f"  underruns {repeat['underruns']}"
            if accuracy := repeat.get("accuracy"):
                low, high = accuracy["interval"]
                line += f"  right {accuracy['share']:.1%} [{low:.1%}, {high:.1%}]"
            if word_errors := repeat.get("words"):
                line += f"  word errors {word_errors['wer_corpus_with_failed']:.1%}"
            print(line, flush=True)
    if similarity := result.get("similarity"):
        print(
            f"  similarity ({similarity['by']}) {similarity['mean']}, failed {similarity['failed']}"
        )


def format_catalogue() -> str:
    """Format every preset and every task, one line each."""
    lines = ["presets:"]
    for name in presets.preset_names():
        runs = presets.PRESETS[name]
        tasks = ", ".join(run.task for run in runs[:3]) + (", ..." if len(runs) > 3 else "")
        lines.append(f"  {name:22} {tasks}")
    return "\n".join([*lines, "tasks:", *(f"  {name}" for name in sorted(TASKS))])


def main(command: Sequence[str] | None = None) -> int:
    """Run, print and write. Return 1 if a request failed, 2 if a run could not be made."""
    arguments = parse_arguments(command)
    if arguments.list:
        print(format_catalogue())
        return 0
    failed = 0
    recognisers: dict[str, SpeechRecogniser | None] = {}
    try:
        similarity = (
            SpeakerSimilarity(arguments.speaker_network) if arguments.speaker_network else None
        )
        arguments.model = arguments.model or served_model(arguments.url)
        for config, folder in build_configs(arguments):
            language = TASKS[config.task].language
            if arguments.recogniser and language and language not in recognisers:
                recognisers[language] = _load_recogniser(arguments, language)
            result = evaluate(config, folder, recognisers.get(language or ""), similarity)
            print_result(result)
            failed += sum(
                repeat["failed"] for row in result["summary"] for repeat in row["repeats"]
            )
    except (DatasetError, UnsupportedRequest, RecogniserUnavailable, RunMismatch, OSError) as error:
        print(f"evaluate: {error}", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
