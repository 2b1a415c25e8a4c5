"""Command lines of training runs."""

import argparse
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch


def run_parser(
    description: str | None, settings: Any, peak: float, data: str = "corpus"
) -> argparse.ArgumentParser:
    """Return a parser with the options of every run.

    Each plain field of a settings dataclass is an option, too. `data` is the name of the option
    with the folder that the run reads.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(f"--{data}", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seconds", type=positive_seconds, default=360)
    parser.add_argument("--pause", type=float, default=math.inf, help="seconds of this call")
    parser.add_argument("--peak", type=float, default=peak, help="the highest rate")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, value in plain_fields(settings).items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            parser.add_argument(option, default=value, action=argparse.BooleanOptionalAction)
        else:
            parser.add_argument(option, default=value, type=type(value))
    return parser


def positive_seconds(text: str) -> float:
    """Parse how long a run takes: without an end before its beginning, it would never end."""
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return seconds


def plain_fields(settings: Any) -> dict[str, Any]:
    """Return the numbers and flags of a settings dataclass."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def settings_from_args(args: argparse.Namespace, settings: Any) -> dict[str, Any]:
    """Return the values of the settings on the command line."""
    return {name: getattr(args, name) for name in plain_fields(settings)}
