"""Draw mel spectrograms of the model and of its source, side by side.

    python -m cookbook.ming_mini.spectrograms --model CHECKPOINT --output FILE.png

One sentence that is not from a template, in every preset voice: as the synthesizer says it, at its
steady pitch, and as the model says it.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from cookbook.ming_mini.evaluation.speech import CheckpointSpeaker
from cookbook.ming_mini.losses import mel_matrix, spectrum
from cookbook.ming_mini.speakers import PRESETS
from cookbook.ming_mini.synthesize import synthesize, synthesize_natural
from cookbook.ming_mini.vocoder import RATE
from sglang_omni.engines.speech.contract import TalkerSettings
from sglang_omni.models.ming.speech.modules import load_modules

TEXT = "The old bridge over the river is closed on Monday."
SIZE, BANDS, HOP = 2048, 80, 441
FLOOR = 1e-4
COLUMNS = ("synthesizer", "steady pitch", "Ming-mini")


def log_mel(samples: np.ndarray) -> np.ndarray:
    """Return the log-mel spectrogram [bands, frames] of samples [n], up to 11 kHz in its bands."""
    waveform = torch.from_numpy(np.asarray(samples, np.float32))[None]
    bins = spectrum(waveform, SIZE, torch.hann_window(SIZE), HOP).abs()
    return (mel_matrix(RATE, SIZE, BANDS) @ bins)[0].clamp_min(FLOOR).log().numpy()


def draw_spectrograms(speech: CheckpointSpeaker, path: Path, seed: int) -> None:
    """Write the picture."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(PRESETS), len(COLUMNS), figsize=(12, 8), sharey=True)
    for row, speaker in zip(axes, PRESETS, strict=True):
        said = speech.say(TEXT, speaker.name, seed)
        recordings = synthesize_natural(TEXT, speaker), synthesize(TEXT, speaker), said
        for place, samples, column in zip(row, recordings, COLUMNS, strict=True):
            seconds = len(samples) / RATE
            place.imshow(
                log_mel(samples), origin="lower", aspect="auto", extent=(0, seconds, 0, BANDS)
            )
            place.set_title(f"{speaker.name}: {column}", fontsize=9)
            place.tick_params(labelsize=7)
    figure.suptitle(f'"{TEXT}" ({BANDS} mel bands, seconds)', fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    with_palette(path)


def with_palette(path: Path) -> None:
    """Reduce a picture to 256 colours, which halves its bytes."""
    with Image.open(path) as picture:
        kept = picture.convert("RGB").quantize(256)
    kept.save(path, optimize=True)


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    settings = TalkerSettings(args.model, slots=1)
    draw_spectrograms(
        CheckpointSpeaker(
            load_modules(settings.checkpoint, settings.device, settings.dtype), settings
        ),
        args.output,
        args.seed,
    )


if __name__ == "__main__":
    main()
