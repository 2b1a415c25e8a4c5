"""Options that documents and scripts name exist, with values that the configuration takes."""

import re
import shlex
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest

from benchmarks.evaluation.protocol.presets import PRESETS
from benchmarks.evaluation.tasks import TASKS
from sglang_omni.config.load import load_config
from sglang_omni.config.option_list import list_options
from sglang_omni.entrypoints.cli.config_arguments import ALIASES, read_config, to_flag
from sglang_omni.entrypoints.cli.main import build_parser

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "ci", "cookbook", "deploy", "docs")
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(path for name in FOLDERS for path in (ROOT / name).rglob("*.md"))]
)
SCRIPTS = sorted(path for name in FOLDERS for path in (ROOT / name).rglob("*.sh"))

# Of the tools that scripts and recipes call, by tool.
FOREIGN = {
    "apt-get": {"--no-install-recommends"},
    "curl": {
        "--retry",
        "--retry-connrefused",
        "--retry-delay",
        "--show-error",
        "--silent",
        "--fail",
        "--header",
        "--data",
        "--output",
    },
    "debootstrap": {"--variant", "--include"},
    "env": {"--chdir"},
    "helm": {"--set"},
    "mount": {"--bind", "--rbind"},
    "setpriv": {"--reuid", "--regid", "--clear-groups", "--no-new-privs", "--bounding-set"},
    "smg": {
        "--control-plane-api-keys",
        "--health-check-endpoint",
        "--health-check-interval-secs",
        "--health-failure-threshold",
        "--health-success-threshold",
        "--policy",
        "--prometheus-host",
        "--prometheus-port",
        "--routing-key-headers",
    },
    "systemctl": {"--now"},
    "unshare": {"--mount", "--propagation"},
    "wc": {"--bytes"},
    "git": {"--quiet", "--short"},
    "nproc": {"--all"},
    "nvidia-smi": {"--format", "--query-gpu"},
    "npm": {"--silent"},
    "vite": {"--emptyOutDir", "--logLevel", "--outDir"},
    "ci/page.sh": {"--build"},
    "wyoming-openai": {"--stt-realtime-models"},
    "uv": {
        "--quiet",
        "--python",
        "--no-deps",
        "--target",
        "--requirement",
        "--universal",
        "--python-version",
        "--generate-hashes",
        "--constraints",
        "--output-file",
        "--require-hashes",
        "--no-cache",
        "--compile-bytecode",
    },
    "pip": {
        "--disable-pip-version-check",
        "--only-binary",
        "--implementation",
        "--platform",
        "--no-cache-dir",
    },
    "tar": {
        *("--owner", "--group", "--create", "--exclude", "--files-from", "--extract"),
        "--directory",
    },
    "docker": {
        "--read-only",
        "--tmpfs",
        "--shm-size",
        "--user",
        "--cap-drop",
        "--security-opt",
        "--target",
        "--gpus",
        "--build",
    },
    "venv": {"--without-pip", "--system-site-packages"},
    "pgrep": {"--full", "--count", "--parent"},
    "pytest": {"--ignore", "--numprocesses", "--no-loadscope-reorder"},
    "SGLang": {"--trust-remote-code", "--tp-size", "--nnodes", "--node-rank", "--dist-init-addr"},
    "ray": {"--head", "--block", "--address", "--node-ip-address", "--include-dashboard"},
    "sglang-router": {"--policy", "--worker-urls"},
}
VALUE = r"""(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<bare>[^\s`|)"'\\]+))"""
OPTION = re.compile(rf"(?<![\w-])(?P<name>--[a-z][\w.-]*\w)(?:(?: |=)(?!-)(?:{VALUE}))?")
# troubleshooting.md shows what is said of an option that does not exist.
MISSPELT = "--thinker.tp_sise"


@dataclass(frozen=True)
class Named:
    """An option as a document names it, with the value behind it, if there is one."""

    document: str
    name: str
    value: str | None

    def __str__(self) -> str:
        return f"{self.document} {self.name} {self.value}"


def code_of(path: Path) -> Iterator[str]:
    """The code of a document: lines of blocks, and spans of text; of a script all of it."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sh":
        yield from (line for line in text.splitlines() if not line.lstrip().startswith("#"))
        return
    block = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
    for found in block.finditer(text):
        yield from found[1].replace("\\\n", " ").splitlines()
    yield from (span.replace("\n", " ") for span in re.findall(r"`([^`]+)`", block.sub("", text)))


def named_in(path: Path) -> Iterator[Named]:
    for code in code_of(path):
        for found in OPTION.finditer(code):
            value = next((one for one in found.group("single", "double", "bare") if one), None)
            yield Named(path.relative_to(ROOT).as_posix(), found["name"], value)


def own_options(parser: ArgumentParser) -> set[str]:
    """The options of a parser and of its commands."""
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for command in action.choices.values():
                found |= own_options(command)
    return found


def script_options() -> set[str]:
    """The options that Python programs of the repository define."""
    programs = (path for name in (*FOLDERS, "tests") for path in (ROOT / name).rglob("*.py"))
    texts = (path.read_text(encoding="utf-8") for path in programs)
    found = {option for text in texts for option in re.findall(r'"(--[a-z][\w-]*)"', text)}
    # argparse.BooleanOptionalAction adds the opposite.
    return found | {f"--no-{option[2:]}" for option in found}


PATHS = {
    flag: option.path
    for option in list_options()
    for flag in (to_flag(option), *ALIASES.get(option.path, ()))
}
BOOLS = {option.path for option in list_options() if option.type is bool}
NAMED = [named for path in (*DOCUMENTS, *SCRIPTS) for named in named_in(path)]


def is_placeholder(named: Named) -> bool:
    """Whether a script or a reader puts something else there."""
    assert named.value is not None
    return "$" in named.value or re.fullmatch(r"[A-Z]+", named.value) is not None


def is_given(named: Named) -> bool:
    """Whether the word behind an option is its value: in a script one may follow a flag."""
    if named.value is None or named.name not in PATHS or is_placeholder(named):
        return False
    flag = PATHS[named.name] in BOOLS
    return not (flag and named.document.endswith(".sh") and named.value not in ("true", "false"))


def test_every_option_that_is_named_exists() -> None:
    known = own_options(build_parser()) | script_options() | set().union(*FOREIGN.values())
    unknown = {str(one) for one in NAMED if one.name not in known and one.name != MISSPELT}
    assert not unknown


GIVEN = sorted(set(filter(is_given, NAMED)), key=str)


@pytest.mark.parametrize("named", GIVEN, ids=str)
def test_every_value_that_is_given_is_one_that_the_option_takes(named: Named) -> None:
    assert named.value is not None
    load_config(None, {PATHS[named.name]: named.value})


BENCHMARKS = {"--preset": set(PRESETS), "--task": set(TASKS)}


@pytest.mark.parametrize("option", BENCHMARKS)
def test_every_preset_and_task_that_is_named_exists(option: str) -> None:
    named = {one.value for one in NAMED if one.name == option and one.value}
    assert named
    assert named <= BENCHMARKS[option]


def commands() -> Iterator[tuple[str, str]]:
    """Every complete command line of ours, as the shell splits it off, and where it stands."""
    for path in DOCUMENTS:
        for code in code_of(path):
            for part in re.split(r"\s(?:\||&&|2?>)\s?", code):
                if re.match(r"(\S*/)?sgl-omni \w", part) and MISSPELT not in part:
                    yield path.relative_to(ROOT).as_posix(), part


COMMANDS = sorted(set(commands()))


@pytest.mark.parametrize(("document", "command"), COMMANDS, ids=" ".join)
def test_every_command_is_one_that_runs(document: str, command: str) -> None:
    words = shlex.split(command, comments=True)[1:]
    if words[1:] and words[1:2] != ["--help"]:
        parsed = build_parser().parse_args(words)
        if hasattr(parsed, "config"):
            read_config(parsed)


DESIGN = sorted((ROOT / "docs" / "design").glob("*.md"))


@pytest.mark.parametrize("document", DESIGN, ids=lambda path: path.name)
def test_every_file_that_a_design_document_names_exists(document: Path) -> None:
    """A path begins at the root, in the package, or in a folder that the text is about."""
    paths = {path.relative_to(ROOT).as_posix() for path in (ROOT / "sglang_omni").rglob("*")}
    named = re.findall(r"`([\w/.-]+/[\w/.-]*|[\w/]+\.py)`", document.read_text(encoding="utf-8"))
    assert len(named) >= 5
    for name in named:
        below = f"/{name.rstrip('/')}"
        assert (ROOT / name).exists() or any(path.endswith(below) for path in paths), name


def test_what_is_named_is_found() -> None:
    assert len(DOCUMENTS) >= 12
    assert len(SCRIPTS) >= 9
    assert len({one.name for one in NAMED}) >= 100
    assert len(GIVEN) >= 30
    assert len(COMMANDS) >= 15
    closed = {option.path for option in list_options() if get_args(option.type) and option.default}
    assert {"talker.admission", "placement", "log_level", "log_format"} <= closed & {
        PATHS[one.name] for one in GIVEN
    }
