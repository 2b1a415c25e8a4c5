"""Train the talker for a given time, on a corpus that may still grow.

    python -m cookbook.ming_mini_2.voices.train_talker --corpus DIR --vae DIR --output DIR

Options are those of `cookbook.ming_mini.train_talker`. `--start` goes on from averaged weights,
where the state of the run is lost. The corpus has locked pulses (`pulses.py`): those of free ones
are learnt by heart. Each clip has changed copies.
"""

from dataclasses import replace

from cookbook.ming_mini import train_talker
from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini_2.voices.corpus import VoiceCorpusFolder
from cookbook.ming_mini_2.voices.layout import VOICES, prompt_tokenizer

SETTINGS = replace(
    train_talker.Settings(),
    patches=2048,
    rate=Rate(1e-3, 3e-5, 300),
    muon=True,
    copies=4,
    locked=True,
    hours=400.0,
)


def main() -> None:
    """Train, or continue to train."""
    args, settings = train_talker.parse_arguments(__doc__, SETTINGS)
    configs = configurations(VOICES)
    train_talker.train(args, settings, configs, VoiceCorpusFolder, prompt_tokenizer())


if __name__ == "__main__":
    main()
