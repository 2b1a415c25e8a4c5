"""Backbone, heads and the reference loop against the reference."""

from itertools import islice

import pytest
import torch

from sglang_omni.models.ming.speech.cfm import Sampling
from sglang_omni.models.ming.speech.noise import sample_gaussian
from sglang_omni.models.ming.speech.talker import (
    ROTARY_BUFFERS,
    GrowingCache,
    Talker,
    generate,
    load_talker,
)
from sglang_omni.models.weights import TensorFolder, load_strict
from sglang_omni.protocol.errors import CheckpointError
from tests.testing.golden import TINY, cases, load_case


def test_backbone_matches_the_reference(talker: Talker) -> None:
    case = load_case("talker/backbone")
    cache = GrowingCache(talker.model)
    with torch.inference_mode():
        case.check("prefill_hidden", cache.run(case["prefill_embeds"][None])[0])
        steps = [cache.run(embed[None, None])[0] for embed in case["step_embeds"]]
    case.check("step_hidden", torch.cat(steps))


def test_stop_head_matches_the_reference(talker: Talker) -> None:
    case = load_case("talker/stop_head")
    case.check("probs", talker.compute_stop_probabilities(case["hidden"]))


@pytest.mark.parametrize("name", cases("talker", "ar"))
def test_loop_matches_the_reference_patch_by_patch(talker: Talker, name: str) -> None:
    case = load_case(name)
    how = Sampling(case.info["cfg"], case.info["sigma"], case.info["temperature"])
    noise = ((y[None], e[None]) for y, e in zip(case["y0"], case["sde_noise"], strict=True))
    with torch.inference_mode():
        loop = generate(
            talker,
            case["prompt_embeds"],
            case["history0"],
            noise,
            min_patches=case.info["min_new_token"],
            max_patches=1000,
            sampling=how,
        )
        patches = list(islice(loop, case.info["n_steps"]))
        assert [patch.last for patch in patches] == case.info["is_last_flags"]
        if patches[-1].last:
            assert next(loop, None) is None, "the loop goes on after the stop rule"
    case.check("latents", torch.stack([patch.latents for patch in patches]))
    case.check("hidden", torch.stack([patch.hidden for patch in patches]))
    case.check("next_embeds", torch.stack([patch.next_embed for patch in patches]))
    case.check("stop_probs", torch.stack([patch.stop_probs for patch in patches]))


def test_the_patch_at_the_step_limit_is_marked_last(talker: Talker) -> None:
    case = load_case("talker/ar_plain")
    noise = ((y[None], None) for y in case["y0"])
    start = (talker, case["prompt_embeds"], case["history0"], noise)
    with torch.inference_mode():
        patches = list(generate(*start, min_patches=999, max_patches=3, sampling=Sampling()))
    assert [patch.last for patch in patches] == [False, False, True]


def test_patch_noise_draws_every_number_once(talker: Talker) -> None:
    rows = torch.tensor([4]), torch.tensor([1]), torch.tensor([9])
    y0, sde_noise = talker.sample_patch_noise(*rows, Sampling(temperature=1.0))
    assert sde_noise is not None
    assert y0.shape == (1, 4, 64)
    assert sde_noise.shape == (1, 10, 4, 64)
    drawn = torch.cat((y0.flatten(1), sde_noise.flatten(1)), dim=1)
    assert torch.equal(drawn, sample_gaussian(*rows, 11 * 4 * 64))
    assert talker.sample_patch_noise(*rows, Sampling())[1] is None


def test_a_missing_tensor_is_named(talker: Talker) -> None:
    tensors = dict(TensorFolder(TINY / "talker"))
    del tensors["stop_head.bias"]
    with pytest.raises(CheckpointError, match=r"stop_head\.bias"):
        load_strict(Talker(talker.config), tensors, ignore=ROTARY_BUFFERS.__contains__)


def test_loading_rounds_the_rotary_frequencies_to_the_dtype() -> None:
    talker = load_talker(TINY / "talker", torch.device("cpu"), torch.bfloat16)
    frequencies = [talker.model.inv_freq, talker.cfm.model.rotary_embed.inv_freq]
    assert {f.dtype for f in frequencies} == {torch.bfloat16}
    assert {p.dtype for p in talker.parameters()} == {torch.bfloat16}
