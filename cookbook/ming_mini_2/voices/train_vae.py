"""Train the audio VAE for a given time, on a corpus that may still grow.

    python -m cookbook.ming_mini_2.voices.train_vae --corpus DIR --output DIR --seconds 480

Options are those of `cookbook.ming_mini.train_vae`. The loss `phase` (0 is right, 1 is chance)
should fall within the first hundred steps. `--start` goes on from averaged weights, where the state
of the run is lost.
"""

from dataclasses import replace

from cookbook.ming_mini import train_vae
from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini_2.voices.corpus import VoiceCorpusFolder
from cookbook.ming_mini_2.voices.layout import VOICES
from cookbook.ming_mini_2.voices.pulses import LATENT

SETTINGS = replace(train_vae.Settings(), hours=40.0)


def main() -> None:
    """Train, or continue to train."""
    args, settings = train_vae.parse_arguments(__doc__, SETTINGS)
    # Crops start where latents do, as clips and streams: locked pulses have their places there.
    corpus = VoiceCorpusFolder(args.corpus)
    train_vae.train(args, settings, configurations(VOICES)[1], corpus, LATENT)


if __name__ == "__main__":
    main()
