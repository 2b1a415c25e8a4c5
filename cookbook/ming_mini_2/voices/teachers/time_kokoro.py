"""Time how much speech a second Kokoro makes with several processes.

Analysis and takes are left out.

    python -m cookbook.ming_mini_2.voices.teachers.time_kokoro --processes 8 --texts 80
"""

import argparse
import time
from collections.abc import Sequence
from multiprocessing import get_context

import numpy as np

from cookbook.ming_mini_2.voices.teachers import kokoro
from cookbook.ming_mini_2.voices.teachers.onnx_session import runs_on_gpu
from cookbook.ming_mini_2.voices.teachers.phonemes import to_phonemes
from measurement.everyday_sentences import sample_sentences

MIX = (("jf_alpha", 1.0),)


def speak(text: str) -> tuple[float, float]:
    """Return the seconds of speech of a text, and its root mean square."""
    samples = kokoro.speak(to_phonemes(text), MIX)
    return len(samples) / kokoro.RATE, float(np.sqrt(np.mean(samples**2)))


def measure(texts: Sequence[str], processes: int) -> str:
    """Return a line with the rate of so many processes, each of which has spoken before."""
    with get_context("fork").Pool(processes) as pool:
        pool.map(speak, [texts[0]] * processes, chunksize=1)
        start = time.perf_counter()
        said = pool.map(speak, texts, chunksize=1)
        spent = time.perf_counter() - start
    seconds = sum(one for one, _ in said)
    loudness = np.mean([level for _, level in said])
    device = "GPU" if runs_on_gpu() else "CPU"
    return (
        f"{device}, {processes} processes: {seconds:.0f} s of speech in {spent:.1f} s, "
        f"{seconds / spent:.1f} a second, rms {loudness:.3f}"
    )


def main() -> None:
    """Print the rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--texts", type=int, default=40)
    args = parser.parse_args()
    print(measure(sample_sentences(args.texts, seed=1), args.processes), flush=True)


if __name__ == "__main__":
    main()
