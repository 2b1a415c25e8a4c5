"""Measure how well a checkpoint speaks sentences that no training saw, and write JSON.

    python -m cookbook.ming_mini.evaluation.speech --model CHECKPOINT --output FILE

It measures the word errors of an independent recogniser, beside its errors on the source
synthesizer's own audio of the same sentences and on that audio after the VAE; commands of a
grammar; whether a cloned voice is nearest to its own reference; and the real-time factor.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from cookbook.ming_mini import grammar
from cookbook.ming_mini.lexicon import WORDNET, read_lexicon
from cookbook.ming_mini.sentences import commands, held_out, punctuate
from cookbook.ming_mini.speakers import PRESETS, held_out_speakers
from cookbook.ming_mini.synthesize import synthesize, synthesize_natural
from cookbook.ming_mini.vocoder import RATE
from measurement.edit_distance import edit_distance
from measurement.everyday_sentences import sample_sentences
from measurement.pocketsphinx_recogniser import Recogniser, spoken_words
from sglang_omni.engines.runtime.worker import StepInput
from sglang_omni.engines.speech.contract import TalkerChunk, TalkerRequest, TalkerSettings
from sglang_omni.engines.speech.worker import TalkerWorker
from sglang_omni.models.ming.speech.model import MingSpeechModel
from sglang_omni.models.ming.speech.modules import SpeechModules, load_modules
from sglang_omni.models.ming.speech.voices import (
    VoicePrompt,
    encode_prompt,
    pad_prompt,
    sample_posterior_noise,
)
from sglang_omni.models.ming.text.front import split_fragments

REFERENCE_TEXT = (
    "We can meet at the station on Friday. My sister has a small garden behind the house. "
    "The river runs past the old mill, and the water is cold."
)
CLONE_TEXTS = (
    "Please put the small red box on the table near the window.",
    "He said that the train will arrive at seven in the evening.",
    "There are three green apples in the basket.",
    "The children play in the park after school.",
    "I would like a cup of tea with milk.",
)
PARTS = ("words", "everyday", "commands", "cloning")


class CheckpointSpeaker:
    """Drive the product's speech worker directly: a text in, samples out."""

    def __init__(self, model: SpeechModules, settings: TalkerSettings) -> None:
        self.model, self._settings = model, settings
        self._worker = TalkerWorker(MingSpeechModel(model), settings)
        self.seconds_worked = self.seconds_spoken = 0.0

    def say(self, text: str, voice: str, seed: int) -> np.ndarray:
        """Return the speech of `text` as float32 samples [n].

        It is spoken fragment by fragment, as the server does.
        """
        start = time.monotonic()
        parts = [
            self._fragment(TalkerRequest(fragment, voice, seed, segment))
            for segment, fragment in enumerate(split_fragments(text))
        ]
        samples = np.concatenate(parts)
        self.seconds_worked += time.monotonic() - start
        self.seconds_spoken += len(samples) / RATE
        return samples

    def _fragment(self, request: TalkerRequest) -> np.ndarray:
        work, parts = StepInput(arrivals=(("evaluation", request),)), []
        while True:
            ((_, chunk),) = self._worker.step(work)
            if isinstance(chunk, Exception):
                raise chunk
            assert isinstance(chunk, TalkerChunk)
            parts.append(chunk.pcm)
            if chunk.last:
                return np.concatenate(parts)
            work = StepInput()

    def clone(self, name: str, text: str, samples: np.ndarray) -> None:
        """Register a voice from a recording [n] at 44.1 kHz."""
        model = self.model
        prompt = pad_prompt(torch.from_numpy(samples), model.vae, model.talker)
        noise = sample_posterior_noise(name, prompt, model.vae, model.talker)
        latents, embeds = encode_prompt(prompt, noise, model.vae, model.talker)
        voices = model.voices | {name: VoicePrompt(name, text, latents, embeds, None)}
        self.model = replace(model, voices=voices)
        self._worker = TalkerWorker(MingSpeechModel(self.model), self._settings)


@torch.no_grad()
def vae_copy(model: SpeechModules, samples: np.ndarray) -> np.ndarray:
    """Encode and decode samples [n] with the VAE."""
    step = model.vae.config.samples_per_latent
    wave = F.pad(torch.from_numpy(samples), (0, -len(samples) % step))[None]
    return model.vae.decoder(model.vae.encoder(wave).mean)[0, : len(samples)].numpy()


@dataclass
class VoiceErrors:
    """The counts of one voice: spoken words, and word errors in four kinds of audio."""

    words: int = 0
    source: int = 0
    steady: int = 0
    copy: int = 0
    model: int = 0

    def rates(self) -> dict[str, float]:
        """Return the word error rates."""
        return {
            name: round(getattr(self, name) / self.words, 4)
            for name in ("source", "steady", "copy", "model")
        }


def word_error_rates(
    speech: CheckpointSpeaker, texts: Sequence[str], seed: int
) -> Iterator[tuple[str, dict[str, float]]]:
    """Return the word error rates of each preset voice."""
    hear = Recogniser().words
    for speaker in PRESETS:
        errors = VoiceErrors()
        for text in texts:
            steady, said = synthesize(text, speaker), spoken_words(text)
            errors.words += len(said)
            errors.source += edit_distance(said, hear(synthesize_natural(text, speaker)))
            errors.steady += edit_distance(said, hear(steady))
            errors.copy += edit_distance(said, hear(vae_copy(speech.model, steady)))
            errors.model += edit_distance(said, hear(speech.say(text, speaker.name, seed)))
        yield speaker.name, errors.rates()


def command_accuracy(speech: CheckpointSpeaker, count: int, seed: int) -> dict[str, float]:
    """Return the share of unseen commands that are transcribed without error, by kind of audio."""
    hear = Recogniser(grammar.jsgf()).words
    right = {"source": 0, "model": 0}
    for number, text in enumerate(commands(count, seed, "held_out")):
        speaker, said = PRESETS[number % len(PRESETS)], spoken_words(text)
        right["source"] += hear(synthesize_natural(punctuate(text), speaker)) == said
        right["model"] += hear(speech.say(punctuate(text), speaker.name, seed)) == said
    return {kind: round(found / count, 4) for kind, found in right.items()}


def measure_cloning(speech: CheckpointSpeaker, seed: int) -> dict[str, float]:
    """Return how often a cloned voice is nearest to its own reference.

    The ten voices are held out, and each is cloned from nine seconds of speech. The same is
    measured for the synthesizer's own speech of the same texts.
    """
    from resemblyzer import VoiceEncoder

    encoder = VoiceEncoder("cpu", verbose=False)
    speakers = held_out_speakers()
    references = [synthesize(REFERENCE_TEXT, speaker) for speaker in speakers]
    wanted = _embed(encoder, references)
    found: dict[str, list[float]] = {"own": [], "own_by_source": [], "like": [], "source_like": []}
    for number, (speaker, reference) in enumerate(zip(speakers, references, strict=True)):
        speech.clone(speaker.name, REFERENCE_TEXT, reference)
        made = _embed(encoder, [speech.say(text, speaker.name, seed) for text in CLONE_TEXTS])
        real = _embed(encoder, [synthesize(text, speaker) for text in CLONE_TEXTS])
        for said, right, like in ((made, "own", "like"), (real, "own_by_source", "source_like")):
            alike = said @ wanted.T
            found[right] += (alike.argmax(1) == number).tolist()
            found[like] += alike[:, number].tolist()
    return {
        "trials": len(found["own"]),
        "nearest_is_own": float(np.mean(found["own"])),
        "nearest_is_own_by_source": float(np.mean(found["own_by_source"])),
        "similarity": float(np.mean(found["like"])),
        "similarity_of_source": float(np.mean(found["source_like"])),
    }


def _embed(encoder, recordings: Sequence[np.ndarray]) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Return unit speaker embeddings [n, 256]."""
    from resemblyzer import preprocess_wav

    waves = [preprocess_wav(recording, source_sr=RATE) for recording in recordings]
    return np.stack([encoder.embed_utterance(wave) for wave in waves])


def main() -> None:
    """Measure everything and write one JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    parser.add_argument("--sentences", type=int, default=50)
    parser.add_argument("--commands", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    settings = TalkerSettings(args.model, slots=1)
    speech = CheckpointSpeaker(
        load_modules(settings.checkpoint, settings.device, settings.dtype), settings
    )
    report: dict[str, object] = {"seed": args.seed}
    if "words" in args.parts:
        texts = held_out(args.sentences, args.seed, read_lexicon(args.lexicon))
        report["sentences"] = len(texts)
        report["word_error_rate"] = dict(word_error_rates(speech, texts, args.seed))
    if "everyday" in args.parts:
        texts = sample_sentences(args.sentences, args.seed)
        report["everyday_word_error_rate"] = dict(word_error_rates(speech, texts, args.seed))
    if "commands" in args.parts:
        report["command_accuracy"] = command_accuracy(speech, args.commands, args.seed)
    if "cloning" in args.parts:
        report["cloning"] = measure_cloning(speech, args.seed)
    report["real_time_factor"] = round(speech.seconds_worked / speech.seconds_spoken, 3)
    args.output.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
