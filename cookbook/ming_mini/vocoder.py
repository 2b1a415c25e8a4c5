"""Speech at one steady pitch, with its pulses aligned to the VAE's frames.

The decoder's head outputs the phases of 80 ms spectra. In natural speech these change in every
frame, and a small model spends most of its training on them. Here every voice keeps one of a few
pitches whose periods fit the hop of 882 samples, with a pulse in the middle of every frame. Then
the phases of voiced sound are the same numbers in every frame of every voice, and only a spectral
envelope has to be learned. Melody is lost.

WORLD's analysis (Morise et al., 2016; the package pyworld) gives envelope and voicing.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

RATE = 44_100
HOP = 882
"""Samples of a VAE frame."""
PITCHES = (100.0, 150.0, 200.0)
"""Hz; their periods divide a hop, or four of them make one."""
FRAME_SECONDS = 0.005
SIZE = 2048
"""Samples of a pulse's response and of a burst of noise."""
BURST = 256
"""Samples from burst to burst of noise."""
TOP_HZ = 7800.0
SPECTRA = 509
"""Different spectra of noise, drawn from at random."""
DELAY_SECONDS = 0.002
"""By how much the highest frequencies come before the lowest: pulses of one phase would click."""


@dataclass(frozen=True)
class Analysis:
    """Power envelope and pitch of speech every 5 ms.

    The envelope is [frames, bins] up to `rate` / 2, the pitch [frames] in Hz. The pitch is 0 where
    there is no voice.
    """

    envelope: np.ndarray
    pitch: np.ndarray
    rate: int


def analyse(samples: np.ndarray, rate: int) -> Analysis:
    """Return envelope and pitch of samples [n]."""
    import pyworld

    wave = samples.astype(np.float64)
    rough, times = pyworld.dio(wave, rate, frame_period=1e3 * FRAME_SECONDS)
    pitch = pyworld.stonemask(wave, rough, times, rate)
    return Analysis(pyworld.cheaptrick(wave, pitch, times, rate), pitch, rate)


def phase(hertz: np.ndarray) -> np.ndarray:
    """Return the phases [bins] of a pulse at its own time: a mild chirp."""
    return -np.pi * DELAY_SECONDS * hertz**2 / TOP_HZ


def resynthesise(speech: Analysis, pitch: float, seed: int = 0) -> np.ndarray:
    """Return speech of an analysis at one pitch: float32 [n] at 44.1 kHz.

    n is a multiple of the hop.
    """
    length = len(speech.pitch) * FRAME_SECONDS * RATE
    count = int(np.ceil(length / HOP)) * HOP
    voiced, unvoiced = _gains(speech)
    pulses = np.arange(HOP / 2, count, RATE / pitch)
    bursts = np.arange(0, count, BURST)
    hertz = np.arange(SIZE // 2 + 1) * RATE / SIZE
    tones = _magnitudes(speech, voiced, pulses, hertz) * np.sqrt(RATE / pitch)
    # A pulse between two samples is one on a sample with a phase shift; few such places exist.
    places, which = np.unique(pulses % 1, return_inverse=True)
    turn = phase(hertz) - 2 * np.pi * hertz / RATE * places[:, None]
    noise = np.random.default_rng(seed).integers(SPECTRA, size=len(bursts))
    hiss = _magnitudes(speech, unvoiced, bursts, hertz) * np.sqrt(BURST)
    out = np.zeros(count + 2 * SIZE)
    _add(out, tones * np.exp(1j * turn)[which], pulses)
    _add(out, hiss * _noise_spectra(len(hertz))[noise], bursts, np.hanning(2 * BURST + 1)[:-1])
    return out[SIZE : SIZE + count].astype(np.float32)


@cache
def _noise_spectra(bins: int) -> np.ndarray:
    """Return spectra [SPECTRA, bins] of magnitude one and random phases."""
    return np.exp(1j * np.random.default_rng(0).uniform(-np.pi, np.pi, (SPECTRA, bins)))


def _gains(speech: Analysis) -> tuple[np.ndarray, np.ndarray]:
    """Return the gains of tone and noise in every frame.

    A frame has one or the other; between them is a cross-fade of 10 ms.
    """
    voiced = np.convolve(speech.pitch > 0, np.ones(3) / 3, mode="same")
    return np.sqrt(voiced), np.sqrt(1 - voiced)


def _magnitudes(
    speech: Analysis, gain: np.ndarray, at: np.ndarray, hertz: np.ndarray
) -> np.ndarray:
    """Return magnitudes [len(at), bins] of the envelope, times the gain, at these samples."""
    frame = np.minimum(np.round(at / RATE / FRAME_SECONDS).astype(int), len(gain) - 1)
    place = hertz / (speech.rate / 2) * (speech.envelope.shape[1] - 1)
    low = np.minimum(place.astype(int), speech.envelope.shape[1] - 2)
    share = np.clip(place - low, 0, 1)
    roots = np.sqrt(speech.envelope[frame])
    found = roots[:, low] * (1 - share) + roots[:, low + 1] * share
    return np.where(hertz < min(TOP_HZ, speech.rate / 2), found, 0) * gain[frame, None]


def _add(
    out: np.ndarray, spectra: np.ndarray, at: np.ndarray, window: np.ndarray | None = None
) -> None:
    """Add a response around each of these samples to `out`, which starts `SIZE` before them."""
    responses = np.fft.fftshift(np.fft.irfft(spectra, SIZE), axes=1)
    if window is not None:
        edge = (SIZE - len(window)) // 2
        responses *= np.pad(window, (edge, SIZE - len(window) - edge))
    for start, response in zip(at.astype(int) + SIZE // 2, responses, strict=True):
        out[start : start + SIZE] += response
