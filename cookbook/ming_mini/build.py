"""Build Ming-mini from nothing: its data, both halves at once, one packed checkpoint.

    python -m cookbook.ming_mini.build --work DIR --output CHECKPOINT

Needs flite, espeak-ng and WordNet (Debian: `flite espeak-ng wordnet-base`), the extra `cookbook`
and, for the default times, one data-centre GPU. Every step is a program of its own; this one only
runs them.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cookbook.ming_mini.lexicon import WORDNET
from sglang_omni.models.checksums import write_checksums

RECIPE = Path(__file__).parent / "thinker" / "recipe.sh"


def program(name: str, *options: object) -> list[str]:
    """Return the command line of one of the recipe's programs."""
    return [sys.executable, "-m", f"cookbook.ming_mini.{name}", *map(str, options)]


def corpus(args: argparse.Namespace) -> list[str]:
    """Return the command that makes speech while the talker trains."""
    speech = ("--output", args.work / "corpus", "--hours", args.hours, "--seed", args.seed)
    return program("corpus", *speech, "--processes", args.cores // 2, "--lexicon", args.lexicon)


def speaking(args: argparse.Namespace) -> Sequence[list[str]]:
    """Return the commands that make the talker, in order."""
    weights = args.work / "weights"
    common = ("--corpus", args.work / "corpus", "--output", weights, "--seconds")
    return (
        program("train_vae", *common, args.vae_seconds),
        program("train_talker", "--vae", weights, *common, args.talker_seconds),
        program("pack", "--weights", weights, "--output", args.output),
    )


def thinking(args: argparse.Namespace) -> dict[str, str]:
    """Return the settings of the thinker's recipe, which makes its own data."""
    settings = {
        "OUT": args.work / "thinker",
        "DATA": args.work / "thinker_data",
        "LEXICON": args.lexicon,
        "SECONDS_OF_TRAINING": args.thinker_seconds,
        "CORES": args.cores - args.cores // 2,
        "SEED": args.seed,
    }
    return {name: str(value) for name, value in settings.items()}


def main() -> None:
    """Run every step; stop at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--hours", type=float, default=40)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    parser.add_argument("--vae-seconds", type=float, default=600)
    parser.add_argument("--talker-seconds", type=float, default=1200)
    parser.add_argument("--thinker-seconds", type=float, default=1200)
    args = parser.parse_args()
    python = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment = {**os.environ, **python, **thinking(args)}
    with (
        subprocess.Popen(corpus(args)) as making,
        subprocess.Popen(["bash", str(RECIPE)], env=environment) as learning,
    ):
        try:
            for step in speaking(args):
                subprocess.run(step, check=True)
            if learning.wait():
                raise subprocess.CalledProcessError(learning.returncode, str(RECIPE))
        finally:
            making.terminate()
            learning.terminate()
    shutil.copytree(args.work / "thinker" / "checkpoint", args.output, dirs_exist_ok=True)
    write_checksums(args.output)


if __name__ == "__main__":
    main()
