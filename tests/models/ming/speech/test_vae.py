"""The audio VAE against the released model, and its strict loading."""

import json
import logging
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from sglang_omni.models.ming.speech.vae import AudioVAE, load_vae
from sglang_omni.protocol.errors import CheckpointError
from tests.testing.golden import TINY, cases, load_case

FOLDER = TINY / "talker" / "vae"
CPU = torch.device("cpu")


def load(folder: Path = FOLDER, **options: int | None) -> AudioVAE:
    return load_vae(folder, CPU, torch.float32, **options)


@pytest.fixture(scope="module")
def vae() -> AudioVAE:
    return load()


@pytest.mark.parametrize("name", cases("vae", "encode_"))
def test_encoder_matches_the_reference_stage_by_stage(vae: AudioVAE, name: str) -> None:
    case = load_case(name)
    frames = vae.encoder.embed_frames(case["waveform"][None])
    backbone = vae.encoder.encoder.forward_full(frames)
    posterior = vae.encoder(case["waveform"][None])
    case.check("frames_fc2", frames[0])
    case.check("backbone_out", backbone[0])
    case.check("cls_rows", vae.encoder.aggregate(backbone)[0])
    case.check("mean", posterior.mean[0])
    case.check("scale_raw", posterior.raw[0])
    case.check("std", posterior.std[0])
    case.check("latent", posterior.sample(case["noise"][None])[0])
    assert posterior.mean.shape[1] == case["frame_num"].item()


@pytest.mark.parametrize("name", cases("vae", "decode_"))
def test_decoder_matches_the_reference_stage_by_stage(vae: AudioVAE, name: str) -> None:
    case = load_case(name)
    decoder = vae.decoder
    hidden = decoder.decoder.forward_full(decoder.embed_latents(case["latent"][None]))
    case.check("backbone_out", hidden[0])
    case.check("waveform", decoder(case["latent"][None])[0])
    if "head_out" in case.tensors:
        case.check("head_out", decoder.head.out(hidden)[0])


def test_istft_of_a_constant_spectrum_is_an_impulse_per_frame(vae: AudioVAE) -> None:
    """A flat spectrum is an impulse at the frame's start, where the window is zero."""
    ones = torch.ones(1, 6, 1765)
    shifted = torch.arange(1765) * -torch.pi  # moves each impulse to the middle of its frame
    istft = vae.decoder.head.istft
    out = istft(istft.invert_spectra(ones, shifted.expand(1, 6, -1)))[0]
    peaks = torch.arange(6) * 882 + 1764 - 1323
    assert out.shape == (6 * 882,)
    # Hann windows at a quarter hop: the squared envelope is 1.5 inside the signal.
    assert torch.allclose(out[peaks[2:-2]], torch.full((2,), 1 / 1.5), atol=1e-4)
    out[peaks] = 0
    assert out.abs().max() < 1e-3


def test_only_the_first_four_encoder_layers_run_unless_told(vae: AudioVAE) -> None:
    whole = load(encoder_layers=None)
    assert len(vae.encoder.encoder.layers) == 4
    assert len(whole.encoder.encoder.layers) == 6
    assert len(whole.encoder.aggregator.layers) == 4
    wave = load_case("vae/encode_short")["waveform"][None]
    assert (whole.encoder(wave).mean - vae.encoder(wave).mean).abs().max() > 1e-2


def test_unused_tensors_are_listed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        load()
    for name in ("encoder.norm.bias", "decoder.decoder.embed_tokens.weight", "layers.5.mlp"):
        assert name in caplog.text
    assert "layers.3.mlp" not in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO):
        load(encoder_layers=None)
    assert "layers.5.mlp" not in caplog.text


def copy_with(folder: Path, change: dict[str, torch.Tensor | None]) -> Path:
    """A copy of the VAE with tensors replaced, added or, for None, removed."""
    tensors = {**load_file(FOLDER / "model.safetensors"), **change}
    save_file({k: v for k, v in tensors.items() if v is not None}, folder / "model.safetensors")
    config = json.loads((FOLDER / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("encoder.cls_embed", None, "is missing"),
        ("decoder.head.istft.window", None, "is missing"),
        ("decoder.head.out.bias", torch.zeros(7), "has shape"),
        ("encoder.surprise", torch.zeros(1), "not part of the model"),
        ("decoder.decoder.layers.9.mlp.up_proj.weight", torch.zeros(1), "not part of the model"),
    ],
)
def test_a_wrong_tensor_is_named(
    tmp_path: Path, name: str, value: torch.Tensor | None, message: str
) -> None:
    with pytest.raises(CheckpointError, match=message) as error:
        load(copy_with(tmp_path, {name: value}))
    assert name in str(error.value)


def test_bfloat16_keeps_the_window_and_the_rotary_frequencies_exact(vae: AudioVAE) -> None:
    half = load_vae(FOLDER, CPU, torch.bfloat16)
    assert half.decoder.fc1.weight.dtype == torch.bfloat16
    assert torch.equal(half.decoder.head.istft.window, vae.decoder.head.istft.window)
    assert torch.equal(half.decoder.decoder.inv_freq, vae.decoder.decoder.inv_freq)
    latents = load_case("vae/decode_of_encoded")["latent"][None]
    expected = vae.decoder(latents)
    actual = half.decoder(latents)
    assert actual.dtype == torch.float32
    assert (actual - expected).abs().max() < 0.05 * expected.abs().max()
