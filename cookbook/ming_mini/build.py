"""Build the speaking half of Ming-mini from nothing: speech, VAE, talker, packed folder.

`python -m cookbook.ming_mini.build --work DIR --output CHECKPOINT`

Needs flite, espeak-ng and WordNet (Debian: `flite espeak-ng wordnet-base`) and, for the times
given by default, one data-centre GPU. Every step is a program of its own; this one only runs them.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cookbook.ming_mini.lexicon import WORDNET


def program(name: str, *options: object) -> list[str]:
    """The command line of one of the recipe's programs."""
    return [sys.executable, "-m", f"cookbook.ming_mini.{name}", *map(str, options)]


def steps(args: argparse.Namespace) -> Sequence[list[str]]:
    """What runs one after the other while the corpus grows."""
    corpus, weights = args.work / "corpus", args.work / "weights"
    common = ("--corpus", corpus, "--output", weights, "--seconds")
    return (
        program("train_vae", *common, args.vae_seconds),
        program("train_talker", "--vae", weights, *common, args.talker_seconds),
        program("pack", "--weights", weights, "--output", args.output),
    )


def main() -> None:
    """Run every step; stops at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--hours", type=float, default=60)
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    parser.add_argument("--vae-seconds", type=float, default=3600)
    parser.add_argument("--talker-seconds", type=float, default=7200)
    args = parser.parse_args()
    speech = ("--output", args.work / "corpus", "--hours", args.hours, "--seed", args.seed)
    how = ("--processes", args.processes, "--lexicon", args.lexicon)
    with subprocess.Popen(program("corpus", *speech, *how)) as corpus:
        try:
            for step in steps(args):
                subprocess.run(step, check=True)
        finally:
            corpus.terminate()


if __name__ == "__main__":
    main()
