"""Measure whether a voice stays the same through a long text that a running server reads aloud.

    python -m cookbook.ming_mini.evaluation.voice_drift --voices joe alpha --out FILE

The last seconds of the reading are compared with its first, and random cuts from between with each
other, by the speaker embeddings of resemblyzer (a separate package, which needs `--no-deps` beside
Python 3.11). A voice drifts if its end is less similar to its beginning than two random cuts are to
each other.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import httpx
import numpy as np

from cookbook.ming_mini.lexicon import WORDNET, read_lexicon
from cookbook.ming_mini.sentences import held_out
from measurement.environment import fingerprint
from measurement.openai_api import served_model
from sglang_omni.media.wav import HEADER_BYTES

RATE = 44_100
CUT_S = 20.0
PAIRS = 10

Embed = Callable[[np.ndarray], np.ndarray]
"""Samples [n] at 44.1 kHz to a vector of length 1."""


@dataclass(frozen=True)
class Drift:
    """Cosines of a reading of `seconds`.

    They compare its end with its beginning, and pairs of random cuts. The latter have a mean and a
    deviation.
    """

    seconds: float
    last_to_first: float
    random_mean: float
    random_deviation: float


def measure_drift(samples: np.ndarray, embed: Embed, seed: int) -> Drift:
    """Compare cuts of a reading. Raises `ValueError` if it is too short for four cuts."""
    seconds = len(samples) / RATE
    if seconds < 4 * CUT_S:
        raise ValueError(f"{seconds:.0f} s is too short: {4 * CUT_S:.0f} s are needed")

    def cut(start_s: float) -> np.ndarray:
        return embed(samples[int(start_s * RATE) : int((start_s + CUT_S) * RATE)])

    rng = Random(seed)
    alike = [
        float(cut(a) @ cut(b)) for a, b in (_disjoint_cuts(rng, seconds) for _ in range(PAIRS))
    ]
    ends = float(cut(0.0) @ cut(seconds - CUT_S))
    return Drift(seconds, ends, float(np.mean(alike)), float(np.std(alike)))


def _disjoint_cuts(rng: Random, seconds: float) -> tuple[float, float]:
    """Return the starts of two disjoint cuts between the first cut and the last."""
    room = seconds - 4 * CUT_S
    early, late = sorted(rng.uniform(0, room) for _ in range(2))
    return CUT_S + early, 2 * CUT_S + late


def read_aloud(url: str, text: str, voice: str, seed: int) -> np.ndarray:
    """Return a text as read by a voice of a server: float32 samples [n] at 44.1 kHz."""
    body = {"model": served_model(url), "input": text, "voice": voice, "seed": seed}
    body |= {"response_format": "wav", "max_seconds": 3600}
    reply = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=3600).raise_for_status()
    return np.frombuffer(reply.content[HEADER_BYTES:], "<i2").astype(np.float32) / 32_768


def load_resemblyzer() -> Embed:
    """Load the speaker embeddings [256] of resemblyzer. Raises `ImportError`."""
    from resemblyzer import VoiceEncoder, preprocess_wav

    encoder = VoiceEncoder("cpu", verbose=False)
    return lambda samples: encoder.embed_utterance(preprocess_wav(samples, source_sr=RATE))


def main() -> None:
    """Read, compare and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--voices", nargs="+", default=["default"])
    parser.add_argument("--sentences", type=int, default=110, help="110 are about five minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    text = " ".join(held_out(args.sentences, args.seed, read_lexicon(args.lexicon)))
    embed, drifts = load_resemblyzer(), {}
    for voice in args.voices:
        started_at = time.monotonic()
        samples = read_aloud(args.url, text, voice, args.seed)
        took_s = time.monotonic() - started_at
        drifts[voice] = asdict(measure_drift(samples, embed, args.seed)) | {"took_s": took_s}
        print(voice, json.dumps(drifts[voice]), flush=True)
    result = {"seed": args.seed, "sentences": args.sentences, "environment": fingerprint()}
    args.out.write_text(json.dumps(result | {"voices": drifts}, indent=1) + "\n")


if __name__ == "__main__":
    main()
