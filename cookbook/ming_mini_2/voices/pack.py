"""Pack trained weights as a `talker/` folder in the released layout.

    python -m cookbook.ming_mini_2.voices.pack --weights DIR --output CHECKPOINT

Writes `CHECKPOINT/talker` with bf16 weights, configurations, tokenizer, and the preset voices:
short recordings of the teachers, made as the corpus is. `--form` is that of the corpus. Updates
the capabilities of speech in `CHECKPOINT`, and the checksums of all files.
"""

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import get_args

import numpy as np

from cookbook.ming_mini.pack import write_recordings, write_talker
from cookbook.ming_mini_2.capabilities import LEAVABLE, declare, speech_abilities
from cookbook.ming_mini_2.voices.layout import VOICES
from cookbook.ming_mini_2.voices.speakers import PRESETS
from cookbook.ming_mini_2.voices.synthesize import Form, SpeechJob, Take, make_clips
from sglang_omni.models.checksums import write_checksums

# In the order of the list of voices: the first is a server's default. The texts of joe, alpha, kumo
# and tebukuro were chosen by `evaluation.recordings`, with former weights.
PROMPTS = {
    "joan": "The river runs past the mill to the sea.",
    "joe": "She just bought a very good coat for the winter.",
    "alpha": "There are seven birds in the old tree.",
    "kumo": "My sister has a garden behind the house.",
    "tebukuro": "He put the yellow box on the top shelf.",
    "gongitsune": "My sister has a garden behind the house.",
}


def pack(weights: Path, checkpoint: Path, form: Form, without: Collection[str] = ()) -> int:
    """Write `checkpoint/talker` from trained weights. Returns the bytes of its files.

    The capabilities lack what `without` names of `LEAVABLE`.
    """
    talker = checkpoint / "talker"
    write_talker(weights, talker, VOICES)
    write_recordings(talker, PROMPTS, lambda name, text: recording(name, text, form))
    declare(checkpoint, speech_abilities(without))
    write_checksums(checkpoint)
    return sum(file.stat().st_size for file in talker.rglob("*") if file.is_file())


def recording(name: str, text: str, form: Form) -> np.ndarray:
    """Make the recording of a preset's voice prompt: a clip as in training, int16 [n]."""
    (speaker,) = (one for one in PRESETS if one.name == name)
    (clip,) = make_clips(SpeechJob(text, (Take(speaker),)), form)
    return clip.samples


def main() -> None:
    """Pack, and print the size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--form", choices=get_args(Form), default="locked")
    parser.add_argument("--without", nargs="*", default=(), choices=LEAVABLE)
    args = parser.parse_args()
    size = pack(args.weights, args.output, args.form, args.without)
    print(f"wrote {args.output}/talker: {size / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
