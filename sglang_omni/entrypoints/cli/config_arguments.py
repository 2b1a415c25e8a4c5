"""Command-line arguments of the configuration: `--config FILE`, and a flag for each option."""

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_origin

from sglang_omni.config.load import load_config
from sglang_omni.config.option_list import Option, list_options, list_sections
from sglang_omni.config.tree import Config

# sglang-omni's flags for the same options.
ALIASES = {
    "served_model_name": ("--model-name",),
    "thinker.tp_size": ("--thinker-tp-size",),
    "thinker.gpus": ("--thinker-gpus",),
    "thinker.mem_fraction_static": ("--mem-fraction-static", "--thinker-mem-fraction-static"),
    "talker.gpus": ("--talker-gpu", "--gpu-talker"),
    "image_encoder.tp_size": ("--image-encoder-tp", "--image-encoder-tp-size"),
    "image_encoder.gpus": ("--gpu-image-encoder", "--image-encoder-gpus"),
    "audio_encoder.gpus": ("--gpu-audio-encoder",),
}
SYNTAX = (
    "Write a list as A,B or repeat its flag, and a mapping as YAML. "
    "--config FILE takes every option by its name."
)
_PREFIX = "config:"


class WholeWordFormatter(argparse.HelpFormatter):
    """Formats help so that no flag is broken at a hyphen."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


def add_config_options(parser: argparse.ArgumentParser, only: Sequence[str] = ()) -> None:
    """Add a flag for each option, in a group for each section: `--port 80`, `--talker.slots 4`.

    Args:
        parser: Parser of a command.
        only: Paths of the options to add; all if empty.
    """
    parser.epilog = SYNTAX
    parser.formatter_class = WholeWordFormatter
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="YAML file; command-line options override it"
    )
    for section in list_sections():
        options = [one for one in list_options() if one.section == section.path]
        options = [one for one in options if not only or one.path in only]
        if options:
            about = section.description if section.path else None
            group = parser.add_argument_group(section.path or "general", about)
            for option in options:
                _add_option(group, option)


def _add_option(group: argparse._ArgumentGroup, option: Option) -> None:
    settings: dict[str, Any] = {"dest": f"{_PREFIX}{option.path}", "metavar": "VALUE"}
    if option.type is bool:
        # It needs no value: `--text-only`.
        settings |= {"nargs": "?", "const": "true"}
    if _is_list(option):
        settings["action"] = "append"
    text = f"{option.description} {describe_argument(option)}".replace("%", "%%")
    group.add_argument(to_flag(option), help=text, **settings)
    if option.path in ALIASES:
        group.add_argument(*ALIASES[option.path], help=argparse.SUPPRESS, **settings)


def _is_list(option: Option) -> bool:
    return get_origin(option.type) is tuple


def describe_argument(option: Option) -> str:
    """Return the allowed values, the default and the aliases of an option, in parentheses."""
    default, aliases = format_default(option), describe_aliases(option)
    parts = [option.values, default and f"default: {default}", aliases]
    return f"({'; '.join(filter(None, parts))})"


def format_default(option: Option) -> str:
    """Return the default as a command line writes it, "" for an option that is unset."""
    value = option.default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value in (None, {}) else str(value)


def describe_aliases(option: Option, quote: str = "") -> str:
    """Return the flags of sglang-omni for the option in words, "" for none."""
    names = [f"{quote}{name}{quote}" for name in ALIASES.get(option.path, ())]
    return f"also {' or '.join(names)}, as in sglang-omni" if names else ""


def to_flag(option: Option) -> str:
    """Return the command-line flag of an option."""
    return "--" + (option.path if "." in option.path else option.path.replace("_", "-"))


def read_config(parsed: argparse.Namespace) -> Config:
    """Return the configuration that a command line asks for. Raises `ConfigError`."""
    overrides = {
        name.removeprefix(_PREFIX): ",".join(value) if isinstance(value, list) else value
        for name, value in vars(parsed).items()
        if name.startswith(_PREFIX) and value is not None
    }
    return load_config(parsed.config, overrides)
