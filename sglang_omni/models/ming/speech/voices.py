"""Voices: recordings of the checkpoint and of users, encoded for the talker's prompt.

A registered voice holds what the prompt needs: the VAE latents of the recording, their aggregator
embeddings, and the projected speaker vector.
"""

import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import soundfile
import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.speech.noise import sample_gaussian
from sglang_omni.models.ming.speech.speaker_encoder import (
    SPEAKER_RATE,
    SpeakerEncoder,
    compute_speaker_fbank,
    resample,
)
from sglang_omni.models.ming.speech.talker import Talker
from sglang_omni.models.ming.speech.vae import AudioVAE
from sglang_omni.models.ming.speech.voice_manifest import MANIFEST, read_manifest
from sglang_omni.protocol.errors import CheckpointError

logger = logging.getLogger(__name__)

SPEAKER_MODEL = "campplus.onnx"
ASSET_ROOT_VARIABLE = "SGLANG_OMNI_VOICE_ASSET_ROOT"
MIN_RECORDING_S = 0.1


@dataclass(frozen=True)
class VoicePreset:
    """A voice of the manifest: its name, the transcript of its recording, and the recording."""

    name: str
    text: str
    wav: Path


@dataclass(frozen=True)
class VoicePrompt:
    """A registered voice.

    `text` is the transcript of the recording, None if unknown. `latents` is float32 [T, 64], T a
    multiple of 4; `embeds` [T / 4, hidden] has one row per patch; `speaker` is [hidden], None where
    the checkpoint has no speaker encoder.
    """

    name: str
    text: str | None
    latents: Tensor
    embeds: Tensor
    speaker: Tensor | None


def load_voices(
    checkpoint: Path,
    talker: Talker,
    vae: AudioVAE,
    speaker_encoder: SpeakerEncoder | None,
) -> dict[str, VoicePrompt]:
    """Register every preset of `checkpoint/talker/data/voice_name.json`, by name.

    Without `speaker_encoder` the voices have no speaker vector.

    Raises:
        CheckpointError: The manifest is malformed or a recording is unusable.
    """
    voices = {}
    for preset in read_presets(checkpoint / "talker"):
        waveform, rate = read_recording(preset.wav)
        latents, vector = encode_voice(preset.name, waveform, rate, talker, vae, speaker_encoder)
        voices[preset.name] = build_voice_prompt(preset.name, preset.text, latents, vector, talker)
    return voices


def encode_voice(
    name: str,
    waveform: Tensor,
    rate: int,
    talker: Talker,
    vae: AudioVAE,
    speaker_encoder: SpeakerEncoder | None,
) -> tuple[Tensor, Tensor | None]:
    """Encode a recording [n] at `rate` Hz.

    `name` seeds the noise that draws the latents from the VAE's posterior.

    Returns:
        Latents float32 [T, 64] on the VAE's device, and the speaker vector [192], None without
        `speaker_encoder`.
    """
    prompt = pad_prompt(resample(waveform, rate, vae.config.sample_rate), vae, talker)
    noise = sample_posterior_noise(name, prompt, vae, talker)
    latents, _ = encode_prompt(prompt, noise, vae, talker)
    return latents, None if speaker_encoder is None else speaker_encoder(
        _compute_speaker_features(waveform, rate)
    )


def build_voice_prompt(
    name: str, text: str | None, latents: Tensor, vector: Tensor | None, talker: Talker
) -> VoicePrompt:
    """Register a voice from latents [T, 64] and the speaker vector [192], if it has one."""
    latents = latents.to(talker.spk_head.weight.device)
    speaker = None if vector is None else project_speaker(vector, talker)
    return VoicePrompt(name, text, latents, embed_latents(latents, talker), speaker)


def build_empty_voice(talker: Talker) -> VoicePrompt:
    """Return the voice prompt for music and sound effects, which have no speaker."""
    config, like = talker.config, talker.spk_head.weight
    latents = like.new_zeros(0, config.latent_dim, dtype=torch.float32)
    return VoicePrompt("", None, latents, like.new_zeros(0, config.llm.hidden_size), None)


def open_speaker_encoder(folder: Path) -> SpeakerEncoder | None:
    """Open the speaker encoder of a talker folder; return None and log if it is missing."""
    path = folder / SPEAKER_MODEL
    if path.is_file():
        return SpeakerEncoder(path)
    logger.info("%s is missing; voices have no speaker vector", path)
    return None


def read_presets(folder: Path) -> list[VoicePreset]:
    """Return the voices of the manifest in a talker folder, with the paths of their recordings.

    Recordings are searched below the folder, then below $SGLANG_OMNI_VOICE_ASSET_ROOT.
    """
    entries = read_manifest(folder)
    extra_root = os.environ.get(ASSET_ROOT_VARIABLE)
    roots = [folder, Path(extra_root)] if extra_root else [folder]
    return [_parse_preset(name, entry, roots, folder / MANIFEST) for name, entry in entries.items()]


def _parse_preset(name: str, entry: Any, roots: Sequence[Path], manifest: Path) -> VoicePreset:
    try:
        text, path = entry["prompt_text"], entry["prompt_wav_path"]
    except (KeyError, TypeError):
        text = path = None
    if not isinstance(text, str) or not isinstance(path, str):
        raise CheckpointError(
            f"{manifest}: voice {name!r} must have the strings prompt_text and prompt_wav_path"
        )
    return VoicePreset(name, text, find_asset(path, roots))


def find_asset(path: str, roots: Sequence[Path]) -> Path:
    """Find the file of a manifest path: its longest suffix that exists below a root.

    Released manifests contain absolute paths of the machine that wrote them. The first root with a
    match is used.

    Raises:
        CheckpointError: The path contains `..`, exists below no root, or is a link out of its root.
    """
    parts = PurePosixPath(path).parts
    if ".." in parts:
        raise CheckpointError(f"voice file {path!r} must not contain '..'")
    parts = tuple(part for part in parts if part != "/")
    for root in roots:
        for start in range(len(parts)):
            candidate = root.joinpath(*parts[start:])
            if candidate.is_file():
                return _check_contained(candidate, root)
    searched = ", ".join(str(root) for root in roots)
    raise CheckpointError(
        f"voice file {path!r} was not found below {searched} (see ${ASSET_ROOT_VARIABLE})"
    )


def _check_contained(file: Path, root: Path) -> Path:
    """Return `file` if it resolves to a path below `root`; raise `CheckpointError` otherwise."""
    resolved, resolved_root = file.resolve(), root.resolve()
    allowed = [resolved_root]
    # A Hugging Face cache keeps `snapshots/<revision>/` as links into `blobs/` of the same model.
    allowed += [
        parent.parent / "blobs" for parent in resolved_root.parents if parent.name == "snapshots"
    ]
    if not any(resolved.is_relative_to(folder) for folder in allowed):
        raise CheckpointError(f"voice file {file} is a link to a file outside {root}")
    return file


def read_recording(path: Path) -> tuple[Tensor, int]:
    """Read samples [n] in [-1, 1] and the rate in Hz; channels are averaged, which is logged.

    Raises:
        CheckpointError: The file cannot be read or is shorter than 0.1 s.
    """
    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise CheckpointError(f"voice file {path} cannot be read: {error}") from None
    if len(samples) < MIN_RECORDING_S * rate:
        raise CheckpointError(f"voice file {path} is shorter than {MIN_RECORDING_S} s")
    if samples.shape[1] > 1:
        logger.warning("%s has %d channels; using their mean", path, samples.shape[1])
    return torch.from_numpy(np.ascontiguousarray(samples.mean(axis=1))), rate


def pad_prompt(waveform: Tensor, vae: AudioVAE, talker: Talker) -> Tensor:
    """Prepend silence to samples [n] so that they fill whole patches (14112 samples each)."""
    patch = vae.config.samples_per_latent * talker.config.patch_size
    return F.pad(waveform, (-len(waveform) % patch, 0))


def sample_posterior_noise(name: str, prompt: Tensor, vae: AudioVAE, talker: Talker) -> Tensor:
    """Return noise [T, 64] for the latents of a padded prompt, seeded by the voice name.

    The reference draws new noise in every process, so its voices differ from start to start.
    """
    shape = (talker.config.patch_size, talker.config.latent_dim)
    patches = len(prompt) // (vae.config.samples_per_latent * shape[0])
    digest = hashlib.sha256(name.encode()).digest()
    seed = torch.full((patches,), int.from_bytes(digest[:8], "little", signed=True))
    noise = sample_gaussian(
        seed, torch.zeros_like(seed), torch.arange(patches), shape[0] * shape[1]
    )
    return noise.unflatten(1, shape).flatten(0, 1)


@torch.no_grad()
def encode_prompt(
    prompt: Tensor, noise: Tensor, vae: AudioVAE, talker: Talker
) -> tuple[Tensor, Tensor]:
    """Return float32 latents [T, 64] and embeddings [T / 4, hidden] of a padded prompt [n].

    `noise` [T, 64] draws the latents from the VAE's posterior.
    """
    device = talker.spk_head.weight.device
    latents = vae.encoder(prompt[None].to(device)).sample(noise[None].to(device))[0]
    return latents, embed_latents(latents, talker)


@torch.no_grad()
def embed_latents(latents: Tensor, talker: Talker) -> Tensor:
    """Return one embedding per patch, [T / 4, hidden], of latents [T, 64]."""
    like = talker.spk_head.weight
    return talker.aggregator(latents.to(like).unflatten(0, (-1, talker.config.patch_size)))


@torch.no_grad()
def project_speaker(vector: Tensor, talker: Talker) -> Tensor:
    """Return the embedding [hidden] of a speaker vector [192]."""
    return talker.spk_head(vector.to(talker.spk_head.weight))


def _compute_speaker_features(waveform: Tensor, rate: int) -> Tensor:
    return compute_speaker_fbank(resample(waveform, rate, SPEAKER_RATE))
