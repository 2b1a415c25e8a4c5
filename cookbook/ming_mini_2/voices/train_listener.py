"""Train the listener for a given time, on a corpus that may still grow.

    python -m cookbook.ming_mini_2.voices.train_listener --corpus DIR --output DIR --seconds 180

Options are those of `cookbook.ming_mini.train_listener`. `train_vae --listener DIR` uses it.
"""

from cookbook.ming_mini import train_listener
from cookbook.ming_mini_2.voices.corpus import VoiceCorpusFolder


def main() -> None:
    """Train."""
    args, settings = train_listener.parse_arguments(__doc__)
    train_listener.train(args, settings, VoiceCorpusFolder(args.corpus))


if __name__ == "__main__":
    main()
