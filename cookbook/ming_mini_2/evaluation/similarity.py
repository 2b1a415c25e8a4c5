"""Whether a cloned voice is nearest to its own recording, by an independent speaker embedding.

And whether it has the recording's pitch.
"""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cookbook.ming_mini.evaluation.speech import CLONE_TEXTS, REFERENCE_TEXT
from cookbook.ming_mini.synthesize import to_int16
from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini_2.evaluation.melody import median_semitones
from cookbook.ming_mini_2.voices.speakers import VoiceSpeaker
from measurement.intervals import wilson_interval
from measurement.media_files import encode_wav

MOST_SEMITONES = 2.0
"""By so much may the median pitch of a clone differ from that of its recording."""

Embed = Callable[[np.ndarray], np.ndarray]
"""Samples [n] at 44.1 kHz to a vector of unit length."""
SayAs = Callable[[str, dict[str, str]], np.ndarray]
"""A text and the fields of the voice to samples [n]."""


def reference_fields(recording: np.ndarray, text: str) -> dict[str, str]:
    """Return the fields of a speech request that clone a recording of a text.

    The recording is int16 [n] at 44.1 kHz.
    """
    file = base64.b64encode(encode_wav(recording, RATE)).decode()
    return {"ref_audio": f"data:audio/wav;base64,{file}", "ref_text": text}


def clone_all(
    speakers: Sequence[VoiceSpeaker], recordings: Sequence[np.ndarray], say: SayAs
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield every speaker's number with a text in the cloned voice."""
    for number, recording in enumerate(recordings[: len(speakers)]):
        fields = reference_fields(to_int16(recording), REFERENCE_TEXT)
        for text in CLONE_TEXTS:
            yield number, say(text, fields)


def measure_similarity(
    recordings: Sequence[np.ndarray], said: Sequence[tuple[int, np.ndarray]], embed: Embed
) -> dict[str, Any]:
    """Return how often speech is nearest to its own speaker's recording, and how similar it is."""
    references = np.stack([embed(recording) for recording in recordings])
    alike = [(number, references @ embed(samples)) for number, samples in said]
    nearest = sum(int(likeness.argmax()) == number for number, likeness in alike)
    return {
        "items": len(alike),
        "nearest_is_own": nearest / len(alike),
        "interval": wilson_interval(nearest, len(alike)),
        "similarity": float(np.mean([likeness[number] for number, likeness in alike])),
    }


def compare_similarity(
    recordings: Sequence[np.ndarray],
    clones: Sequence[tuple[int, np.ndarray]],
    others: Mapping[str, Sequence[tuple[int, np.ndarray]]],
    embed: Embed,
) -> dict[str, Any]:
    """Return `measure_similarity` of clones, beside that of other speech by its name."""
    row = measure_similarity(recordings, clones, embed)
    for name, speech in others.items():
        bound = measure_similarity(recordings, speech, embed)
        row[f"nearest_is_own_by_{name}"] = bound["nearest_is_own"]
        row[f"similarity_of_{name}"] = bound["similarity"]
    return row


def measure_pitch(
    recordings: Sequence[np.ndarray], said: Sequence[tuple[int, np.ndarray]]
) -> dict[str, Any]:
    """Return how often speech has its own speaker's median pitch, and by how much it differs.

    The difference is the median of the absolute semitones; of speech without a pitch there is none.
    """
    wanted = [median_semitones(recording) for recording in recordings]
    apart = []
    for number, samples in said:
        own, pitch = wanted[number], median_semitones(samples)
        if own is not None and pitch is not None:
            apart.append(abs(pitch - own))
    kept = sum(one <= MOST_SEMITONES for one in apart)
    return {
        "items": len(said),
        "pitch_kept": kept / len(said),
        "interval": wilson_interval(kept, len(said)),
        "semitones_apart": float(np.median(apart)) if apart else None,
    }


def open_embedder() -> Embed:
    """Return the speaker embedding of the package `resemblyzer`."""
    from resemblyzer import VoiceEncoder, preprocess_wav

    encoder = VoiceEncoder("cpu", verbose=False)

    def embed(samples: np.ndarray) -> np.ndarray:
        return np.asarray(encoder.embed_utterance(preprocess_wav(samples, source_sr=RATE)))

    return embed
