"""The batched step against the plain loop."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from sglang_omni.models.ming.speech.modules import SpeechModules
from sglang_omni.models.ming.speech.slots import TalkerSlots, to_int64
from sglang_omni.models.ming.speech.step import run_decode_step
from sglang_omni.models.ming.speech.talker import Patch
from tests.engines.speech.conftest import PromptParts, Reference

TEXTS = ["One, two, three.", "今天天气很好。", "The river runs slowly past the old stone mill."]
TOLERANCE = 1e-4


class Player:
    """Steps chosen slots and collects what each one made."""

    def __init__(self, model: SpeechModules, count: int = 8, context: int = 512) -> None:
        self.model, self.slots = model, TalkerSlots(model.talker, count, context)
        self.latents: dict[int, list[Tensor]] = {slot: [] for slot in range(count)}
        self.stops: dict[int, list[Tensor]] = {slot: [] for slot in range(count)}

    def join(self, slot: int, parts: tuple[Tensor, Tensor], seed: int, segment: int) -> None:
        self.latents[slot], self.stops[slot] = [], []
        with torch.inference_mode():
            self.slots.prefill(slot, *parts, seed, segment)

    def step(self, *slots: int) -> None:
        span = self.slots.select_span(int(self.slots.lengths[list(slots)].max()))
        out = run_decode_step(self.model.talker, self.slots, torch.tensor(slots), span)
        for slot, latents, stop in zip(slots, out.latents, out.stop, strict=True):
            self.latents[slot].append(latents)
            self.stops[slot].append(stop)

    def assert_equals(self, slot: int, patches: Sequence[Patch]) -> None:
        expected = torch.stack([patch.latents for patch in patches])
        scale = expected.abs().max()
        error = (torch.stack(self.latents[slot]) - expected).abs().max() / scale
        assert error < TOLERANCE, f"slot {slot} is off by {error:.1e}"
        stops = torch.stack([patch.stop_probs[1] for patch in patches])
        torch.testing.assert_close(torch.stack(self.stops[slot]), stops, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("text", TEXTS)
def test_a_slot_alone_equals_the_reference_loop(
    model: SpeechModules, reference: Reference, prompt_parts: PromptParts, text: str
) -> None:
    player = Player(model)
    player.join(5, prompt_parts(text), seed=42, segment=3)
    for _ in range(10):
        player.step(5)
    player.assert_equals(5, reference(text, seed=42, segment=3, patches=10))


def test_eight_slots_at_different_phases_equal_the_reference_loop(
    model: SpeechModules, reference: Reference, prompt_parts: PromptParts
) -> None:
    player, patches = Player(model), 6
    texts = [TEXTS[slot % len(TEXTS)] for slot in range(8)]
    for time in range(7 + patches):
        if time < 8:
            player.join(time, prompt_parts(texts[time]), seed=100 + time, segment=time % 2)
        player.step(*(slot for slot in range(8) if 0 <= time - slot < patches))
    for slot, text in enumerate(texts):
        player.assert_equals(slot, reference(text, 100 + slot, slot % 2, patches))


def test_a_reused_slot_keeps_nothing_of_the_request_before(
    model: SpeechModules, reference: Reference, prompt_parts: PromptParts
) -> None:
    player = Player(model, count=1)
    player.join(0, prompt_parts(TEXTS[2]), seed=1, segment=0)
    for _ in range(5):
        player.step(0)
    player.join(0, prompt_parts(TEXTS[0]), seed=2, segment=0)
    for _ in range(4):
        player.step(0)
    player.assert_equals(0, reference(TEXTS[0], seed=2, segment=0, patches=4))


def test_crossing_a_span_bucket_changes_nothing(
    model: SpeechModules, reference: Reference, prompt_parts: PromptParts
) -> None:
    player = Player(model)
    parts = prompt_parts(TEXTS[0])
    start = len(parts[0]) - 1
    bucket = player.slots.select_span(start)
    patches = bucket - start + 3
    player.join(0, parts, seed=9, segment=0)
    for _ in range(patches):
        player.step(0)
    assert player.slots.select_span(start + patches) > bucket
    player.assert_equals(0, reference(TEXTS[0], seed=9, segment=0, patches=patches))


def test_a_full_context_is_used_to_its_last_position(
    model: SpeechModules, reference: Reference, prompt_parts: PromptParts
) -> None:
    parts = prompt_parts(TEXTS[0])
    context = len(parts[0]) + 2
    player = Player(model, count=1, context=context)
    player.join(0, parts, seed=9, segment=0)
    for _ in range(3):
        player.step(0)
    assert player.slots.lengths.tolist() == [context]
    player.assert_equals(0, reference(TEXTS[0], seed=9, segment=0, patches=3))


def test_seeds_of_any_size_are_read_as_64_bits() -> None:
    assert [to_int64(v) for v in (0, -1, 2**63 - 1, 2**63, 2**64 - 1, 2**64)] == [
        0,
        -1,
        2**63 - 1,
        -(2**63),
        -1,
        0,
    ]
