"""Pack trained weights as a `talker/` folder in the released layout.

    python -m cookbook.ming_mini.pack --weights DIR --output CHECKPOINT

Writes `CHECKPOINT/talker` with bf16 weights, configurations, tokenizer, and the preset voices:
short recordings of the source synthesizers with their transcripts. Also writes the checkpoint's
capabilities and the checksums of all files.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import soundfile
from torch import Tensor

from cookbook.ming_mini.capabilities import ABILITIES
from cookbook.ming_mini.layout import MINI, SpeechLayout, configurations, write_layout
from cookbook.ming_mini.speakers import PRESETS, Speaker
from cookbook.ming_mini.synthesize import synthesize, to_int16
from cookbook.ming_mini.train_talker import TALKER
from cookbook.ming_mini.train_vae import VAE
from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini.weights import load_pieces
from sglang_omni.models import capabilities
from sglang_omni.models.checkpoint_files import WEIGHTS_FILE
from sglang_omni.models.checksums import write_checksums
from sglang_omni.models.ming.config import TalkerConfig
from sglang_omni.models.ming.speech.dit import ROTARY_THETA
from sglang_omni.models.ming.speech.qwen2 import compute_inverse_frequencies
from sglang_omni.models.ming.speech.talker import ROTARY_BUFFERS
from sglang_omni.models.ming.speech.voice_manifest import MANIFEST
from sglang_omni.models.ming.tiny.files import write_json, write_tensors

# In the order of the list of voices: the first, and clearest, is a server's default.
PROMPTS = {
    "rms": "Please move the large chair to the window.",
    "slt": "The answer is in the small green book.",
    "awb": "We can meet at the station on Friday.",
    "kal": "There are seven birds in the old tree.",
}


def pack(weights: Path, checkpoint: Path) -> int:
    """Write `checkpoint/talker` from trained weights. Returns the bytes of its files."""
    folder = checkpoint / "talker"
    write_talker(weights, folder)
    write_voices(folder)
    write_json(checkpoint / capabilities.FILE, ABILITIES)
    write_checksums(checkpoint)
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def write_talker(weights: Path, talker: Path, layout: SpeechLayout = MINI) -> None:
    """Write the folder `talker` but its voices."""
    write_layout(talker, layout)
    config, _ = configurations(layout)
    tensors = load_pieces(weights, TALKER) | rotary_buffers(config)
    write_tensors(talker / WEIGHTS_FILE, tensors)
    write_tensors(talker / "vae" / WEIGHTS_FILE, load_pieces(weights, VAE))


def rotary_buffers(config: TalkerConfig) -> dict[str, Tensor]:
    """Return the tables that the released file stores beside the weights."""
    parts = (config.flow, config.aggregator)
    return {
        name: compute_inverse_frequencies(part.hidden_size // part.num_heads, ROTARY_THETA)
        for name, part in zip(ROTARY_BUFFERS, parts, strict=True)
    }


def write_voices(talker: Path) -> None:
    """Record a self-introduction of every preset speaker, and list the recordings."""
    speakers = {speaker.name: speaker for speaker in PRESETS}
    write_recordings(talker, PROMPTS, lambda name, text: recording(text, speakers[name]))


def write_recordings(
    talker: Path, prompts: Mapping[str, str], record: Callable[[str, str], np.ndarray]
) -> None:
    """Write what `record` makes (name, text) of every prompt as FLAC, and list the recordings."""
    manifest = {}
    for name, text in prompts.items():
        place = f"data/voices/{name}.flac"
        path = talker / place
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, record(name, text), RATE)
        manifest[name] = {"prompt_text": text, "prompt_wav_path": place}
    write_json(talker / MANIFEST, manifest)


def recording(text: str, speaker: Speaker) -> np.ndarray:
    """Make the recording of a voice prompt: a clip as in training, int16 [n]."""
    return to_int16(synthesize(text, speaker))


def main() -> None:
    """Pack, and print the size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    size = pack(args.weights, args.output)
    print(f"wrote {args.output}/talker: {size / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
