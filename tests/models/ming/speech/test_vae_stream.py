"""Streamed decoding equals decoding everything at once."""

import random

import pytest
import torch

from sglang_omni.models.ming.speech.vae import AudioVAE, load_vae, upsample
from sglang_omni.protocol.errors import InvalidRequest
from tests.testing.golden import TINY, assert_close, cases, load_case
from tests.testing.vae_stream import OverlapStream, UpsampleStream, VaeStream


@pytest.fixture(scope="module")
def vae() -> AudioVAE:
    return load_vae(TINY / "talker" / "vae", torch.device("cpu"), torch.float32)


def stream(
    vae: AudioVAE, latents: torch.Tensor, sizes: list[int], last: bool = True
) -> list[torch.Tensor]:
    """Decode latents [T, 64] in chunks of the given sizes."""
    decoder = VaeStream(vae)
    chunks = latents.split(sizes)
    return [
        decoder.push(chunk, last and index == len(sizes) - 1) for index, chunk in enumerate(chunks)
    ]


STREAMS = [name for name in cases("vae") if name.startswith("vae/stream_")]


@pytest.mark.parametrize("name", STREAMS)
def test_streamed_decode_matches_the_reference_chunk_by_chunk(vae: AudioVAE, name: str) -> None:
    case = load_case(name)
    out = stream(vae, case["latent"], case.info["chunk_latents"], case.info["last_chunk"])
    assert [len(chunk) for chunk in out] == case.info["chunk_samples"]
    case.check("waveform_chunks", torch.cat(out))


@pytest.mark.parametrize("seed", range(4))
def test_streamed_decode_equals_full_decode(vae: AudioVAE, seed: int) -> None:
    """Any chunk sizes, across the 64-frame window and single-latent chunks included."""
    draw = random.Random(seed)
    sizes = [draw.choice((1, 2, 3, 4, 5, 16, 20)) for _ in range(8)]
    latents = torch.randn(sum(sizes), 64, generator=torch.Generator().manual_seed(seed))
    full = vae.decoder(latents[None])[0]
    assert len(full) == 3528 * len(latents)
    assert_close(torch.cat(stream(vae, latents, sizes)), full, 1e-5)


def test_a_single_chunk_that_is_last_decodes_at_once(vae: AudioVAE) -> None:
    latents = torch.randn(3, 64, generator=torch.Generator().manual_seed(9))
    assert_close(stream(vae, latents, [3])[0], vae.decoder(latents[None])[0], 1e-5)


@pytest.mark.parametrize("last", [False, True])
def test_an_empty_chunk_is_refused(vae: AudioVAE, last: bool) -> None:
    decoder = VaeStream(vae)
    decoder.push(torch.zeros(4, 64), False)
    with pytest.raises(InvalidRequest, match="empty"):
        decoder.push(torch.zeros(0, 64), last)


def test_streamed_upsampling_matches_the_reference() -> None:
    case = load_case("vae/upsampler")
    rows, sizes = case["x"][None], case.info["chunk_rows"]
    upsampler = UpsampleStream(4)
    out = [
        upsampler.push(chunk, index == len(sizes) - 1)[0]
        for index, chunk in enumerate(rows.split(sizes, dim=1))
    ]
    assert [len(chunk) for chunk in out] == case.info["chunk_out_rows"]
    case.check("chunks", torch.cat(out))
    case.check("full", upsample(rows, 4)[0])


@pytest.mark.parametrize("name", [name for name in cases("vae") if name == "vae/istft"])
def test_streamed_istft_matches_the_reference(vae: AudioVAE, name: str) -> None:
    case = load_case(name)
    istft, sizes = vae.decoder.head.istft, case.info["chunk_frames"]
    frames = istft.invert_spectra(case["magnitude"].mT[None], case["phase"].mT[None])
    overlap = OverlapStream(istft)
    out = [
        overlap.push(chunk, index == len(sizes) - 1)[0]
        for index, chunk in enumerate(frames.split(sizes, dim=1))
    ]
    assert [len(chunk) for chunk in out] == case.info["chunk_samples"]
    case.check("chunks", torch.cat(out))
    case.check("full", istft(frames)[0])
