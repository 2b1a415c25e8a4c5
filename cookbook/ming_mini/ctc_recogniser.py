"""A small CTC recogniser of letters, and the perceptual loss of a VAE's copies that it gives.

Distances of spectra weigh all bands and moments alike, but a word depends on a few short and quiet
sounds. The hidden rows of a network that reads letters from speech differ where the words would. It
learns from the corpus itself (`train_ctc_recogniser.py`); those of the evaluation take no part.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cookbook.ming_mini.losses import FLOOR, mel_matrix, spectrum
from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini.weights import load_weights
from measurement.pocketsphinx_recogniser import spoken_words

CTC_RECOGNISER = "ctc_recogniser"
"""The name of its weights in the folder of a run."""
LETTERS = " 'abcdefghijklmnopqrstuvwxyz"
BLANK = 0
"""The class of no letter; letter n of `LETTERS` is class n + 1."""
WINDOW, HOP = 1024, 441
BANDS, USED_BANDS = 128, 96
"""Mel bands up to half of the sampling rate, and those of them below 9 kHz, which are used."""
SAMPLES_A_ROW = 2 * HOP
KERNEL = 9
TIME_MASK, TIME_MASK_SHARE = 12, 0.15
"""Frames of 10 ms that are masked together in training, and the share of all that are."""
FREQUENCY_MASKS, FREQUENCY_MASK = 2, 22
"""Frequency masks of a clip in training, and how many bands each has at most."""
DROPOUT = 0.1


def encode_letters(text: str) -> list[int]:
    """Return the classes of a text's letters, without punctuation."""
    return [LETTERS.index(letter) + 1 for letter in " ".join(spoken_words(text))]


def decode_letters(classes: Sequence[int]) -> str:
    """Return the letters of classes, which `encode_letters` returned."""
    return "".join(LETTERS[one - 1] for one in classes)


def decode_best_path(classes: Sequence[int]) -> str:
    """Return the letters of the likeliest classes of successive rows: CTC's best path."""
    pairs = zip([BLANK, *classes], classes, strict=False)
    return decode_letters([now for before, now in pairs if now not in (BLANK, before)])


class ConvolutionBlock(nn.Module):
    """A convolution over time for each number of a row, then a network of each row; residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.near = nn.Conv1d(width, width, KERNEL, padding=KERNEL // 2, groups=width)
        self.norm = nn.LayerNorm(width)
        self.widen, self.narrow = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, rows: Tensor) -> Tensor:
        """Return [batch, time, width] of rows of that shape."""
        near = self.norm(self.near(rows.mT).mT)
        return rows + self.dropout(self.narrow(self.dropout(F.gelu(self.widen(near)))))


def mask_spectra(bands: Tensor) -> Tensor:
    """Return log-mel spectra [batch, bands, time] with times and bands set to zero.

    Without them the few hours of speech at the start of a corpus are learnt by heart (SpecAugment,
    Park et al. 2019).
    """
    clips, count, time = bands.shape
    runs = (clips, 1, time // TIME_MASK + 1)
    times = torch.rand(runs, device=bands.device) >= TIME_MASK_SHARE
    first, width = torch.rand(2, FREQUENCY_MASKS, clips, 1, 1, device=bands.device)
    first, width = first * count, width * FREQUENCY_MASK
    place = torch.arange(count, device=bands.device)[:, None]
    masked = ((place >= first) & (place < first + width)).any(0)
    return bands * times.repeat_interleave(TIME_MASK, 2)[..., :time] * ~masked


class CTCRecogniser(nn.Module):
    """Log-mel spectra, blocks that see 1.3 s of speech, and a class of every 20 ms."""

    window: Tensor
    mel: Tensor

    def __init__(self, width: int = 256, blocks: int = 8) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)
        self.register_buffer("mel", mel_matrix(RATE, WINDOW, BANDS)[:USED_BANDS], persistent=False)
        self.enter = nn.Conv1d(USED_BANDS, width, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(ConvolutionBlock(width) for _ in range(blocks))
        self.leave = nn.Linear(width, len(LETTERS) + 1)

    def forward(self, waveform: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return the rows after each block [batch, time, width], and scores of the classes.

        `waveform` is [batch, samples] at 44.1 kHz, the scores are [batch, time, classes].
        """
        bins = torch.view_as_real(spectrum(waveform.float(), WINDOW, self.window, HOP))
        magnitude = (bins.square().sum(-1) + 1e-10).sqrt()
        bands = (self.mel @ magnitude).clamp_min(FLOOR).log() / 2 + 3
        rows = self.enter(mask_spectra(bands) if self.training else bands).mT
        found = []
        for block in self.blocks:
            rows = block(rows)
            found.append(rows)
        return found, self.leave(rows)


def load_ctc_recogniser(place: Path, device: torch.device) -> CTCRecogniser:
    """Load the recogniser from the folder of its training run, frozen."""
    recogniser = CTCRecogniser()
    recogniser.load_state_dict(load_weights(place, CTC_RECOGNISER))
    return recogniser.to(device).eval().requires_grad_(False)


def perceptual_loss(recogniser: CTCRecogniser, made: Tensor, real: Tensor) -> Tensor:
    """Return the distance of the hidden rows of waveforms [batch, samples] from the real ones'.

    It is the mean over the blocks, relative to the size of the real rows.
    """
    with torch.no_grad():
        wanted, _ = recogniser(real)
    found, _ = recogniser(made)
    losses = [
        F.l1_loss(bad.float(), good.float()) / good.float().abs().mean()
        for good, bad in zip(wanted, found, strict=True)
    ]
    return torch.stack(losses).mean()
