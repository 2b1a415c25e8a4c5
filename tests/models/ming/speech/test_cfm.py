"""The time schedule and the flow sampler against the reference."""

import pytest
import torch

from sglang_omni.models.ming.speech.cfm import Sampling, apply_sway, compute_epss_schedule
from sglang_omni.models.ming.speech.talker import Talker
from tests.testing.golden import cases, load_case

# What ten steps become in the released model, rounded to bf16 after every operation.
RELEASED_BF16 = [
    0.0,
    0.00390625,
    0.01953125,
    0.04296875,
    0.07421875,
    0.16796875,
    0.29296875,
    0.4453125,
    0.6171875,
    0.8046875,
    1.0,
]


@pytest.mark.parametrize("steps", [5, 6, 7, 8, 10, 12, 16])
@pytest.mark.parametrize(("label", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_schedule_matches_the_reference(steps: int, label: str, dtype: torch.dtype) -> None:
    case = load_case("talker/schedules")
    base = compute_epss_schedule(steps, dtype)
    case.check(f"t_{steps}_{label}", base.float())
    case.check(f"sway_{steps}_{label}", apply_sway(base).float())


def test_ten_steps_in_bf16_are_the_released_table() -> None:
    assert apply_sway(compute_epss_schedule(10, torch.bfloat16)).tolist() == RELEASED_BF16


@pytest.mark.parametrize("name", cases("talker", "cfm"))
def test_sampler_matches_the_reference_at_every_step(talker: Talker, name: str) -> None:
    case = load_case(name)
    how = Sampling(case.info["cfg"], case.info["sigma"], case.info["temperature"])
    history, y0, sde_noise = (case[key][None] for key in ("history", "y0", "sde_noise"))
    with torch.inference_mode():
        states = talker.cfm.compute_trajectory(case["cond"], history, y0, sde_noise, how)
    case.check("trajectory", torch.cat(states))
    case.check("latent", states[-1][0])


def test_rows_of_a_batch_are_sampled_independently(talker: Talker) -> None:
    case, rows = load_case("talker/cfm_0"), 3
    generator = torch.Generator().manual_seed(0)
    y0 = torch.randn(rows, *case["y0"].shape, generator=generator)
    hidden = torch.randn(rows, case["cond"].shape[1], generator=generator)
    past = torch.randn(rows, *case["history"].shape, generator=generator)
    with torch.inference_mode():
        batch = talker.cfm.sample(hidden, past, y0, None, Sampling())
        for i in range(rows):
            one = slice(i, i + 1)
            alone = talker.cfm.sample(hidden[one], past[one], y0[one], None, Sampling())
            torch.testing.assert_close(batch[one], alone, atol=1e-5, rtol=1e-5)
