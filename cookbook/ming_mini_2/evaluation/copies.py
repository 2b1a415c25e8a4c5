"""Measure which words are lost before a talker says any: in the corpus, and in a VAE's copies.

    python -m cookbook.ming_mini_2.evaluation.copies --vae DIR --out FILE

Everyday sentences, in turn in the presets' voices, are transcribed by Whisper tiny.en three times:
as the teachers say them, as the clips of the corpus do, and as the VAE does that encodes and
decodes those clips. `--vae` is the folder of a training run, or a packed file; without it the
copies are left out.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.train_talker import trained_vae
from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini_2.evaluation.teachers import teacher_clip, teacher_speech
from cookbook.ming_mini_2.voices.layout import VOICES
from cookbook.ming_mini_2.voices.speakers import PRESETS, VoiceSpeaker
from cookbook.ming_mini_2.voices.synthesize import Form
from measurement.edit_distance import edit_distance
from measurement.environment import fingerprint
from measurement.everyday_sentences import sample_sentences
from measurement.pocketsphinx_recogniser import spoken_words
from measurement.whisper_recogniser import WhisperRecogniser, number_words
from sglang_omni.models.ming.speech.vae import AudioVAE

Say = Callable[[str, VoiceSpeaker], np.ndarray]


@torch.no_grad()
def copy(samples: np.ndarray, vae: AudioVAE) -> np.ndarray:
    """Return what a VAE makes of samples [n], a whole number of latents."""
    posterior = vae.encoder(torch.from_numpy(samples)[None])
    return np.asarray(vae.decoder(posterior.mean)[0])


def count_errors(
    said: Sequence[tuple[str, VoiceSpeaker]], say: Say, hear: Callable[[np.ndarray], list[str]]
) -> Iterator[tuple[str, int, int]]:
    """Yield for every sentence the voice, its words, and the wrong ones of them."""
    for text, speaker in said:
        words = spoken_words(number_words(text))
        yield speaker.name, len(words), edit_distance(words, hear(say(text, speaker)))


def summarise(errors: Sequence[tuple[str, int, int]]) -> dict[str, Any]:
    """Return the words and the wrong ones, of all voices and of each."""
    words, wrong = _totals(errors)
    voices = {}
    for name in dict.fromkeys(one[0] for one in errors):
        own_words, own_wrong = _totals([one for one in errors if one[0] == name])
        voices[name] = own_wrong / own_words
    return {"words": words, "wrong": wrong, "word_error": wrong / words, "voices": voices}


def _totals(errors: Sequence[tuple[str, int, int]]) -> tuple[int, int]:
    return sum(words for _, words, _ in errors), sum(wrong for _, _, wrong in errors)


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vae", type=Path)
    parser.add_argument("--form", choices=get_args(Form), default="free")
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    ways: dict[str, Say] = {
        "teacher": teacher_speech,
        "clip": lambda text, speaker: teacher_clip(text, speaker, args.form),
    }
    if args.vae is not None:
        vae = trained_vae(configurations(VOICES)[1], args.vae, torch.device("cpu"))
        ways["copy"] = lambda text, speaker: copy(teacher_clip(text, speaker, args.form), vae)
    hear, texts = WhisperRecogniser().words, sample_sentences(args.count, args.seed)
    said = [(text, PRESETS[number % len(PRESETS)]) for number, text in enumerate(texts)]
    rows = {
        name: summarise(list(count_errors(said, say, lambda heard: hear(heard, RATE))))
        for name, say in ways.items()
    }
    report = {"seed": args.seed, "count": args.count, "rows": rows, "environment": fingerprint()}
    args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: row["word_error"] for name, row in rows.items()}))


if __name__ == "__main__":
    main()
