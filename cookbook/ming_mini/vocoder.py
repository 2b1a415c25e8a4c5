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
    pitch, times = _find_pitch(wave, rate)
    return Analysis(pyworld.cheaptrick(wave, pitch, times, rate), pitch, rate)


def find_pitch(samples: np.ndarray, rate: int) -> np.ndarray:
    """Return the pitch in Hz of samples [n] every 5 ms; 0 where there is no voice."""
    return _find_pitch(samples.astype(np.float64), rate)[0]


def _find_pitch(wave: np.ndarray, rate: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pitch and the times of its frames in seconds."""
    import pyworld

    rough, times = pyworld.dio(wave, rate, frame_period=1e3 * FRAME_SECONDS)
    return pyworld.stonemask(wave, rough, times, rate), times


def phase(hertz: np.ndarray) -> np.ndarray:
    """Return the phases [bins] of a pulse at its own time: a mild chirp."""
    return -np.pi * DELAY_SECONDS * hertz**2 / TOP_HZ


def resynthesise(speech: Analysis, pitch: float, seed: int = 0) -> np.ndarray:
    """Return speech of an analysis at one pitch: float32 [n] at 44.1 kHz.

    n is a multiple of the hop.
    """
    pulses = np.arange(HOP / 2, clip_length(speech), RATE / pitch)
    return render_pulses(speech, Pulses(pulses, np.sqrt(RATE / pitch)), seed=seed)


@dataclass(frozen=True)
class Pulses:
    """The pulses of a voice: places in samples [n], and the gain of each, [n] or one for all."""

    places: np.ndarray
    gains: np.ndarray | float


@dataclass(frozen=True)
class Excitation:
    """How a voice is excited: nothing above `top_hz`, and which bins have noise in voiced frames.

    The share of the pulses falls from 1 at the first of `noise_from_hz` to 0 at the second; None
    gives the pulses everything. Frames without a voice are silent unless there is `hiss`.
    """

    top_hz: float = TOP_HZ
    noise_from_hz: tuple[float, float] | None = None
    hiss: bool = True

    def pulse_share(self, hertz: np.ndarray) -> np.ndarray | float:
        """Return the share of power [bins] that pulses have in a voiced frame."""
        if self.noise_from_hz is None:
            return 1.0
        low, high = self.noise_from_hz
        return 1 - np.clip((hertz - low) / (high - low), 0, 1)


def clip_length(speech: Analysis, multiple: int = HOP) -> int:
    """Return the samples of resynthesised speech: its length up to a multiple of the hop."""
    length = len(speech.pitch) * FRAME_SECONDS * RATE
    return int(np.ceil(length / multiple)) * multiple


def render_pulses(
    speech: Analysis,
    pulses: Pulses,
    excitation: Excitation = Excitation(),
    multiple: int = HOP,
    seed: int = 0,
) -> np.ndarray:
    """Return speech of an analysis with these pulses: float32 [n] at 44.1 kHz.

    n is a multiple of `multiple`.
    """
    count = clip_length(speech, multiple)
    voiced = voiced_shares(speech)
    bursts = np.arange(0, count, BURST)
    hertz = np.arange(SIZE // 2 + 1) * RATE / SIZE
    share, top = excitation.pulse_share(hertz), excitation.top_hz
    tones = _magnitudes(speech, voiced, share, pulses.places, hertz, top)
    tones *= np.reshape(pulses.gains, (-1, 1))
    # A pulse between two samples is one on a sample with a phase shift; few such places exist.
    places, which = np.unique(pulses.places % 1, return_inverse=True)
    turn = phase(hertz) - 2 * np.pi * hertz / RATE * places[:, None]
    noise = np.random.default_rng(seed).integers(SPECTRA, size=len(bursts))
    hiss = _magnitudes(speech, (1 - voiced) * excitation.hiss, 1.0, bursts, hertz, top)
    if excitation.noise_from_hz is not None:
        breath = _magnitudes(speech, voiced, 1 - share, bursts, hertz, top)
        hiss = np.sqrt(np.square(hiss) + np.square(breath))
    window = np.hanning(2 * BURST + 1)[:-1]
    # The window leaves a part of a response's power.
    hiss *= np.sqrt(BURST * SIZE / np.square(window).sum())
    out = np.zeros(count + 2 * SIZE)
    _add(out, tones * np.exp(1j * turn)[which], pulses.places)
    _add(out, hiss * _noise_spectra(len(hertz))[noise], bursts, window)
    return out[SIZE : SIZE + count].astype(np.float32)


@cache
def _noise_spectra(bins: int) -> np.ndarray:
    """Return spectra [SPECTRA, bins] of magnitude one and random phases."""
    return np.exp(1j * np.random.default_rng(0).uniform(-np.pi, np.pi, (SPECTRA, bins)))


def voiced_shares(speech: Analysis) -> np.ndarray:
    """Return the share of power that is voiced in every frame.

    A frame has tone or noise; between them is a cross-fade of 10 ms.
    """
    return np.convolve(speech.pitch > 0, np.ones(3) / 3, mode="same")


def _magnitudes(
    speech: Analysis,
    powers: np.ndarray,
    share: np.ndarray | float,
    at: np.ndarray,
    hertz: np.ndarray,
    top_hz: float,
) -> np.ndarray:
    """Return magnitudes [len(at), bins] of the envelope at these samples.

    They are times the power of the frames, and the share of the bins.
    """
    frame = np.minimum(np.round(at / RATE / FRAME_SECONDS).astype(int), len(powers) - 1)
    place = hertz / (speech.rate / 2) * (speech.envelope.shape[1] - 1)
    low = np.minimum(place.astype(int), speech.envelope.shape[1] - 2)
    above = np.clip(place - low, 0, 1)
    roots = np.sqrt(speech.envelope[frame])
    found = roots[:, low] * (1 - above) + roots[:, low + 1] * above
    found = np.where(hertz < min(top_hz, speech.rate / 2), found, 0) * np.sqrt(share)
    return found * np.sqrt(powers)[frame, None]


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
