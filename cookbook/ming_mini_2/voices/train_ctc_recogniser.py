"""Train the CTC recogniser for a given time, on a corpus that may still grow.

    python -m cookbook.ming_mini_2.voices.train_ctc_recogniser --corpus DIR --output DIR

Options are those of `cookbook.ming_mini.train_ctc_recogniser`; `train_vae --recogniser DIR` uses
it.
"""

from cookbook.ming_mini import train_ctc_recogniser
from cookbook.ming_mini_2.voices.corpus import VoiceCorpusFolder


def main() -> None:
    """Train."""
    args, settings = train_ctc_recogniser.parse_arguments(__doc__)
    train_ctc_recogniser.train(args, settings, VoiceCorpusFolder(args.corpus))


if __name__ == "__main__":
    main()
