"""The batched VAE slots hold to the plain stream and to the full decode."""

import numpy as np
import pytest
import torch

from sglang_omni.models.ming.speech.silence import SilenceTrimmer, trim_silence
from sglang_omni.models.ming.speech.vae import AudioVAE, load_vae
from sglang_omni.models.ming.speech.vae_slots import VaeSlots
from tests.testing.golden import TINY, assert_close, cases, load_case
from tests.testing.vae_stream import VaeStream

# One slot's sizes over its life: look-ahead, cropped start, steady state, everything left.
FIRST, SECOND, STEADY, LAST = 0, 12789, 14112, 29547
PATCH = 4
"""Latents of a patch of the tiny talker."""


@pytest.fixture(scope="module")
def vae() -> AudioVAE:
    return load_vae(TINY / "talker" / "vae", torch.device("cpu"), torch.float32)


def patches(count: int, seed: int, patch: int = PATCH) -> torch.Tensor:
    """Random latents [count, patch, 64]."""
    return torch.randn(count, patch, 64, generator=torch.Generator().manual_seed(seed))


def full(vae: AudioVAE, latents: torch.Tensor) -> torch.Tensor:
    return vae.decoder(latents.flatten(0, 1)[None])[0]


def step(slots: VaeSlots, work: list[tuple[int, torch.Tensor, bool]]) -> dict[int, torch.Tensor]:
    """One call with (slot, patch [4, 64], last) per busy slot."""
    index, latents, last = zip(*work, strict=True)
    out = slots.decode(torch.tensor(index), torch.stack(latents), torch.tensor(last))
    return dict(zip(index, out, strict=True))


def run_alone(slots: VaeSlots, slot: int, latents: torch.Tensor) -> list[torch.Tensor]:
    """Decode one whole stream in one slot."""
    end = len(latents) - 1
    return [step(slots, [(slot, patch, i == end)])[slot] for i, patch in enumerate(latents)]


@pytest.mark.parametrize("patch", [1, 2, PATCH])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 28])
def test_a_slot_equals_the_full_decode_and_the_plain_stream(
    vae: AudioVAE, count: int, patch: int
) -> None:
    """Seven patches of four are 112 frames: the window of 64 moves on within the fifth."""
    latents = patches(count, count, patch)
    stream = VaeStream(vae)
    plain = [stream.push(patch, index == count - 1) for index, patch in enumerate(latents)]
    out = run_alone(VaeSlots(vae, 3, patch), 1, latents)
    assert [len(samples) for samples in out] == [len(samples) for samples in plain]
    assert_close(torch.cat(out), torch.cat(plain), 1e-5)
    assert_close(torch.cat(out), full(vae, latents), 1e-5)


def test_samples_leave_as_early_as_the_look_ahead_allows(vae: AudioVAE) -> None:
    out = run_alone(VaeSlots(vae, 1, PATCH), 0, patches(5, seed=0))
    assert [len(samples) for samples in out] == [FIRST, SECOND, STEADY, STEADY, LAST]
    assert all(x.dtype == torch.float32 and x.device.type == "cpu" for x in out)


def test_slots_that_join_and_leave_at_any_time_do_not_disturb_each_other(vae: AudioVAE) -> None:
    """Nine streams of 1 to 9 patches share four slots; each must equal its own full decode."""
    streams = {name: patches(length, seed=name) for name, length in enumerate(range(9, 0, -1))}
    waiting = list(streams)
    running: dict[int, tuple[int, int]] = {}
    heard: dict[int, list[torch.Tensor]] = {name: [] for name in streams}
    slots, calls = VaeSlots(vae, 4, PATCH), 0
    while waiting or running:
        if waiting and len(running) < 4 and calls % 2 == 0:
            slot = next(slot for slot in (2, 0, 3, 1) if slot not in running)
            running[slot] = (waiting.pop(0), 0)
        work = [
            (slot, streams[name][done], done + 1 == len(streams[name]))
            for slot, (name, done) in running.items()
        ]
        for slot, samples in step(slots, work).items():
            name, done = running[slot]
            heard[name].append(samples)
            running[slot] = (name, done + 1)
            if done + 1 == len(streams[name]):
                del running[slot]
        calls += 1
    assert calls < sum(len(latents) for latents in streams.values())
    for name, latents in streams.items():
        assert_close(torch.cat(heard[name]), full(vae, latents), 1e-5, f"stream {name}")


def test_a_slot_left_out_of_a_call_keeps_its_place(vae: AudioVAE) -> None:
    slots, latents, other = VaeSlots(vae, 2, PATCH), patches(4, seed=1), patches(4, seed=2)
    out = [step(slots, [(0, latents[0], False), (1, other[0], False)])[0]]
    out.append(step(slots, [(1, other[1], False), (0, latents[1], False)])[0])
    step(slots, [(1, other[2], False)])
    step(slots, [(1, other[3], True)])
    out += [step(slots, [(0, latents[i], i == 3)])[0] for i in (2, 3)]
    assert_close(torch.cat(out), full(vae, latents), 1e-5)


def test_a_reset_slot_has_forgotten_even_broken_numbers(vae: AudioVAE) -> None:
    slots, latents = VaeSlots(vae, 2, PATCH), patches(3, seed=3)
    for _ in range(3):
        step(slots, [(1, torch.full((4, 64), torch.nan), False)])
    slots.reset(1)
    assert_close(torch.cat(run_alone(slots, 1, latents)), full(vae, latents), 1e-5)


def test_bfloat16_slots_stay_close_to_float32(vae: AudioVAE) -> None:
    half = load_vae(TINY / "talker" / "vae", torch.device("cpu"), torch.bfloat16)
    latents = patches(6, seed=4)
    out, expected = torch.cat(run_alone(VaeSlots(half, 1, PATCH), 0, latents)), full(vae, latents)
    assert (out - expected).abs().max() < 0.05 * expected.abs().max()


@pytest.mark.parametrize("name", cases("e2e", "tts_", required=False))
def test_latents_to_trimmed_speech_matches_the_reference(vae: AudioVAE, name: str) -> None:
    case = load_case(name)
    latents = load_case(case.info["latents_in"])["latents"]
    rate, trimmer, end = case.info["sample_rate"], SilenceTrimmer(44100), len(latents) - 1
    decoded = [x.numpy() for x in run_alone(VaeSlots(vae, 1, PATCH), 0, latents)]
    spoken = [trimmer.push(x, index == end) for index, x in enumerate(decoded)]
    assert [len(x) for x in decoded] == case.info["chunk_samples_decoder"]
    assert [len(x) for x in spoken] == case.info["chunk_samples_out_corrected"]
    case.check("waveform", torch.from_numpy(np.concatenate(spoken)))
    case.check("waveform", torch.from_numpy(trim_silence(full(vae, latents).numpy(), rate)))


@pytest.mark.gpu
def test_a_slot_on_the_gpu_equals_the_full_decode_on_the_cpu(vae: AudioVAE) -> None:
    on_gpu = load_vae(TINY / "talker" / "vae", torch.device("cuda"), torch.float32)
    slots, latents = VaeSlots(on_gpu, 2, PATCH), patches(6, seed=5)
    out = run_alone(slots, 1, latents.cuda())
    assert_close(torch.cat(out), full(vae, latents), 1e-4)
