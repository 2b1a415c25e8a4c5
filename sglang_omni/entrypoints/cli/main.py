"""The command line: `sgl-omni serve | say | normalize | chat | draw | ...`.

Commands import their modules when they run, so that `--help` is fast.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sglang_omni.config.load import to_yaml
from sglang_omni.entrypoints.cli.config_arguments import add_config_options, read_config
from sglang_omni.protocol.errors import OmniError
from sglang_omni.version import package_version

# Exit status of a command that Ctrl-C ended, as shells report it.
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Return the exit status."""
    parsed = build_parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed) or 0)
    except OmniError as error:
        print(f"sgl-omni: {error.message}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


class _ExactParser(argparse.ArgumentParser):
    """Accepts complete option names only, like the YAML file, and no abbreviations."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of every command. The server's options come from the configuration tree."""
    parser = _ExactParser(prog="sgl-omni", description="Serve omni-modal models.")
    parser.add_argument("--version", action="version", version=f"sgl-omni {package_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_serve(commands)
    _add_node(commands)
    _add_say(commands)
    _add_normalize(commands)
    _add_chat(commands)
    _add_draw(commands)
    _add_timeline(commands)
    _add_status(commands)
    _add_make_tiny(commands)
    _add_quantize(commands)
    _add_doctor(commands)
    _add_config(commands)
    _add_reference(commands)
    _add_completion(commands)
    return parser


# Those that the rules read; their module takes longer to import than `--help` may.
LANGUAGES = ("en", "zh")
# The forms of the head that `quantize` writes, its default first.
HEAD_FORMS = ("fp8", "bf16")
SHELLS = ("bash", "zsh")
DEFAULT_URL = "http://127.0.0.1:8000"
# The usage of commands that take every option of the configuration.
OPTIONS = "[-h] [--config FILE] [OPTION ...]"


def _add_serve(commands: Any) -> None:
    serve = commands.add_parser("serve", usage=f"sgl-omni serve {OPTIONS}", help="start the server")
    serve.add_argument("--version", choices=["v1"], default="v1", help="generation of the API")
    add_config_options(serve)
    _add_verbose(serve)
    serve.set_defaults(run=_serve)


def _add_node(commands: Any) -> None:
    node = commands.add_parser(
        "node",
        usage=f"sgl-omni node --rank RANK {OPTIONS}",
        help="run the thinker's ranks of a further machine (thinker.nodes)",
    )
    node.add_argument("--rank", type=int, required=True, help="number of this machine, from 1")
    add_config_options(node)
    node.set_defaults(run=_node)


SAY_OPTIONS = ("model_path", "device", "dtype", "voice", "log_folder", "verbose")


def _add_say(commands: Any) -> None:
    say = commands.add_parser("say", help="synthesise a text to a WAV file, without a server")
    say.add_argument("text")
    say.add_argument("-o", "--output", type=Path, required=True, help="the WAV file to write")
    say.add_argument("--seed", type=int, default=0, help="random seed (default 0)")
    add_config_options(say, only=SAY_OPTIONS)
    _add_verbose(say)
    say.set_defaults(run=_say)


def _add_normalize(commands: Any) -> None:
    normalize = commands.add_parser(
        "normalize",
        help="print the words that are spoken for a text, without a model",
        description="Print the words that are spoken for a text or SSML. Without TEXT, each line "
        r"of standard input is answered by a line; \n in a line stands for a line break.",
    )
    normalize.add_argument("text", nargs="?", metavar="TEXT")
    normalize.add_argument(
        "--language", choices=LANGUAGES, help="language of a text that shows none, as a number does"
    )
    normalize.add_argument(
        "--lexicon",
        type=Path,
        metavar="FILE",
        help="JSON file of words and what is spoken for them",
    )
    normalize.add_argument("--explain", action="store_true", help="show how each form was read")
    normalize.set_defaults(run=_normalize)


def _add_chat(commands: Any) -> None:
    chat = commands.add_parser("chat", help="chat with a running server in the terminal")
    chat.add_argument("--system", help="system message")
    chat.add_argument("--voice", help="voice of the answers")
    chat.add_argument("--save", type=Path, metavar="DIR", help="save each answer's speech here")
    chat.add_argument("--play", action="store_true", help="play each answer's speech")
    chat.add_argument("--temperature", type=float, help="sampling temperature; 0 is greedy")
    chat.add_argument("--max-tokens", type=int, help="maximum length of an answer in tokens")
    _add_server(chat)
    chat.set_defaults(run=_chat)


def _add_draw(commands: Any) -> None:
    draw = commands.add_parser("draw", help="draw or edit images with a running server")
    draw.add_argument("text", help="what to draw, or how to change the image of --edit")
    draw.add_argument(
        "-o", "--output", type=Path, required=True, help="the .png, .jpg or .webp file to write"
    )
    draw.add_argument("--size", metavar="WIDTHxHEIGHT", help="size; its ratio is kept exactly")
    draw.add_argument("--negative", metavar="TEXT", help="what the image is not to show")
    draw.add_argument("--steps", type=int, help="number of steps")
    draw.add_argument("--seed", type=int, help="seed of the first image; others have the next")
    draw.add_argument("--count", type=_parse_count, default=1, help="number of images (default 1)")
    draw.add_argument(
        "--edit",
        type=Path,
        action="append",
        default=[],
        metavar="IMAGE",
        help="image to edit; the model sees the others if it is given again",
    )
    _add_server(draw)
    draw.set_defaults(run=_draw)


def _parse_count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError("must be a number from 1")
    return int(text)


def _add_server(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that ask a running server."""
    parser.add_argument("--base-url", default=DEFAULT_URL, help="URL of the server")
    parser.add_argument("--api-key", metavar="SOURCE", help="API key: file:PATH or env:NAME")


def _read_key(parsed: argparse.Namespace) -> str | None:
    """Return the key that `_add_server` takes. Raises `ConfigError`."""
    from sglang_omni.entrypoints.api_keys import read_first_key

    return read_first_key(parsed.api_key, "--api-key") if parsed.api_key else None


def _add_timeline(commands: Any) -> None:
    timeline = commands.add_parser("timeline", help="print the timeline of a request")
    which = timeline.add_mutually_exclusive_group(required=True)
    which.add_argument("request_id", nargs="?", metavar="REQUEST_ID", help="its X-Request-Id")
    which.add_argument("--last", action="store_true", help="the latest answer that has ended")
    _add_server(timeline)
    timeline.set_defaults(run=_timeline)


def _add_status(commands: Any) -> None:
    status = commands.add_parser("status", help="print the engines of a server and their load")
    status.add_argument("--json", action="store_true", help="print what /ready says")
    _add_server(status)
    status.set_defaults(run=_status)


def _add_make_tiny(commands: Any) -> None:
    tiny = commands.add_parser("make-tiny", help="write a tiny checkpoint with random weights")
    tiny.add_argument("folder", type=Path, metavar="DIR")
    tiny.add_argument("--seed", type=int, default=0)
    tiny.set_defaults(run=_make_tiny)


def _add_quantize(commands: Any) -> None:
    quantize = commands.add_parser("quantize", help="quantize a checkpoint to FP8 or four bits")
    quantize.add_argument("source", type=Path, metavar="SRC", help="a checkpoint in bfloat16")
    quantize.add_argument("target", type=Path, metavar="DST", help="a new folder")
    forms = quantize.add_mutually_exclusive_group(required=True)
    forms.add_argument(
        "--fp8",
        action="store_true",
        help="the thinker in FP8 with a scale for each block of 128 x 128, and what draws images "
        "with a scale for each row",
    )
    forms.add_argument(
        "--int4",
        action="store_true",
        help="experts in four bits with a scale for each 128 columns, the rest as with --fp8",
    )
    quantize.add_argument(
        "--asymmetric",
        action="store_true",
        help="with --int4: a zero for each scale, which is a little closer and a little larger",
    )
    quantize.add_argument(
        "--head",
        choices=HEAD_FORMS,
        default=HEAD_FORMS[0],
        help="the thinker's output head: in FP8 like other matrices, or bf16, which keeps it as it "
        "is (default %(default)s)",
    )
    quantize.add_argument(
        "--calibration",
        type=Path,
        metavar="FILE",
        help="with --int4: chats of text with answers as JSON Lines, each as in a body of "
        "/v1/chat/completions; weights are rounded so that outputs for these chats differ least",
    )
    quantize.add_argument(
        "--device", help="with --calibration: what computes, such as cuda; cpu unless given"
    )
    quantize.set_defaults(run=_quantize)


def _add_doctor(commands: Any) -> None:
    doctor = commands.add_parser(
        "doctor",
        usage=f"sgl-omni doctor {OPTIONS}",
        help="check the machine, the options and the checkpoint, and say what to do",
    )
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_config_options(doctor)
    doctor.set_defaults(run=_doctor)


def _add_config(commands: Any) -> None:
    config = commands.add_parser("config", help="show the configuration")
    actions = config.add_subparsers(required=True, metavar="ACTION")
    view = actions.add_parser(
        "view",
        usage=f"sgl-omni config view {OPTIONS}",
        help="print the resolved configuration as YAML",
    )
    add_config_options(view)
    view.set_defaults(run=_view_config)


def _add_reference(commands: Any) -> None:
    reference = commands.add_parser("reference", help="print every route, field and option")
    reference.set_defaults(run=_reference)


def _add_completion(commands: Any) -> None:
    completion = commands.add_parser(
        "completion", help="print the completion of commands and options for a shell"
    )
    completion.add_argument("shell", choices=SHELLS)
    completion.set_defaults(run=_complete)


def _add_verbose(parser: argparse.ArgumentParser) -> None:
    """Add `-v`. Unlike `--verbose` it takes no value, because a text to say may follow it."""
    parser.add_argument(
        "-v",
        dest="config:verbose",
        action="store_const",
        const="true",
        help="same as --verbose: show the engines' output",
    )


def _serve(parsed: argparse.Namespace) -> int:
    from sglang_omni.entrypoints.cli.serve import serve

    return serve(read_config(parsed))


def _node(parsed: argparse.Namespace) -> int:
    from sglang_omni.entrypoints.cli.node import run_node

    return run_node(read_config(parsed), parsed.rank)


def _say(parsed: argparse.Namespace) -> int:
    from sglang_omni.entrypoints.cli.say import say

    return say(read_config(parsed), parsed.text, parsed.output, parsed.seed)


def _normalize(parsed: argparse.Namespace) -> int:
    from sglang_omni.entrypoints.cli.normalize import normalize
    from sglang_omni.models.speech_text import ReadingOptions
    from sglang_omni.serving.reading import read_lexicon

    lexicon = read_lexicon(parsed.lexicon, "--lexicon") if parsed.lexicon else {}
    reading = ReadingOptions(lexicon=lexicon, language=parsed.language)
    return normalize(parsed.text, reading, explains=parsed.explain)


def _chat(parsed: argparse.Namespace) -> int:
    from sglang_omni.entrypoints.cli.chat import Chat

    return Chat(parsed, _read_key(parsed)).run()


def _draw(parsed: argparse.Namespace) -> int:
    from sglang_omni.entrypoints.cli.draw import DrawCommand, draw

    command = DrawCommand(
        prompt=parsed.text,
        output=parsed.output,
        count=parsed.count,
        edit=tuple(parsed.edit),
        fields={
            "negative_prompt": parsed.negative,
            **{name: getattr(parsed, name) for name in ("size", "steps", "seed")},
        },
        base_url=parsed.base_url,
        key=_read_key(parsed),
    )
    return draw(command)


def _timeline(parsed: argparse.Namespace) -> int:
    from sglang_omni.entrypoints.cli.timeline import timeline

    request_id = "last" if parsed.last else parsed.request_id
    return timeline(parsed.base_url, request_id, _read_key(parsed))


def _status(parsed: argparse.Namespace) -> int:
    from sglang_omni.entrypoints.cli.status import status

    return status(parsed.base_url, _read_key(parsed), as_json=parsed.json)


def _make_tiny(parsed: argparse.Namespace) -> int:
    from sglang_omni.models.registry import default_family

    default_family().write_tiny_checkpoint(parsed.folder, parsed.seed)
    print(f"wrote a tiny checkpoint with random weights to {parsed.folder}")
    return 0


def _quantize(parsed: argparse.Namespace) -> int:
    from sglang_omni.entrypoints.cli.quantize import quantize, select_calibration, select_form
    from sglang_omni.models.base import HeadForm

    form = select_form(parsed.int4, parsed.asymmetric)
    calibration = select_calibration(form, parsed.calibration, parsed.device)
    head = HeadForm(parsed.head)
    quantize(parsed.source, parsed.target, form, calibration=calibration, head=head)
    print(f"wrote {parsed.target}")
    return 0


def _doctor(parsed: argparse.Namespace) -> int:
    from sglang_omni.entrypoints.cli.doctor import doctor

    return doctor(read_config(parsed), as_json=parsed.json)


def _view_config(parsed: argparse.Namespace) -> int:
    print(to_yaml(read_config(parsed)), end="")
    return 0


def _reference(_: argparse.Namespace) -> int:
    from sglang_omni.entrypoints.cli.reference import print_reference

    return print_reference()


def _complete(parsed: argparse.Namespace) -> int:
    import shtab

    print(shtab.complete(build_parser(), shell=parsed.shell))
    return 0
