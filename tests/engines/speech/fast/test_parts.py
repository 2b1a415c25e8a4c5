"""The step, the prefill and the vocoder over packed weights, against their plain forms in slots.

The tiny model in float32: what differs is the order of sums.
"""

import pytest
import torch

from sglang_omni.kernels.pdl import supports_pdl
from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.speech.cfm import Sampling
from sglang_omni.models.ming.speech.fast.ops import FusedOps, LibraryOps, Ops
from sglang_omni.models.ming.speech.fast.prefill import (
    MAX_PROMPTS,
    PackedPrefill,
    VoiceTable,
    count_fitting,
    pack_prompts,
)
from sglang_omni.models.ming.speech.fast.state import SlotState
from sglang_omni.models.ming.speech.fast.step import FastStep, OpsSelector
from sglang_omni.models.ming.speech.fast.vocoder import FastVocoder
from sglang_omni.models.ming.speech.model import MingSpeechInput
from sglang_omni.models.ming.speech.modules import SpeechModules, load_modules
from sglang_omni.models.ming.speech.prompt import (
    PromptIds,
    SpeechPrompt,
    build_initial_history,
    embed_prompt,
)
from sglang_omni.models.ming.speech.slots import TalkerSlots
from sglang_omni.models.ming.speech.step import run_decode_step
from sglang_omni.models.ming.speech.vae_slots import VaeSlots
from sglang_omni.models.speech import Admission
from tests.engines.speech.fast.conftest import INTERPRETED
from tests.testing.golden import TINY, assert_close

TOLERANCE = 2e-4
# The interpreter takes a second for what takes a GPU a microsecond: one flow step shows the rule.
FLOW_STEPS = 1 if INTERPRETED else 10
OPS = ["library"] if INTERPRETED else ["fused", "pdl", "library"]
TURNS = [[2, 0]] if INTERPRETED else [[2, 0], [2, 0, 3], [3], [0, 3, 2]]
CONTEXT = 256
SLOTS = 4
# Prompts of a pass: with and without a speaker, and for the interpreter no third.
STARTS = 2 if INTERPRETED else 3
# Empty rows that fill a batch, all in the spare slot; two at once are in `test_flow.py` as well.
SPARES = 1 if INTERPRETED else 2
# Patches by slot: six wrap the ring of 80.
UNITS = {1: 6, 3: 3 if INTERPRETED else 6}
# Slots that differ in guidance, and one of them in noise between the steps.
SAMPLING = {2: Sampling(), 0: Sampling(cfg=3.5), 3: Sampling(4.5, 0.3, 2.5)}
TEXTS = {2: "One, two, three.", 0: "今天天气很好。", 3: "The river runs past the mill."}


@pytest.fixture(scope="module")
def plain(device: torch.device) -> SpeechModules:
    """The plain modules, whose weights nothing has packed."""
    return load(device)


@pytest.fixture
def model(device: torch.device) -> SpeechModules:
    return load(device)


def load(device: torch.device) -> SpeechModules:
    model = load_modules(TINY, device.type)
    model.talker.cfm.steps = FLOW_STEPS
    return model


@pytest.fixture(params=OPS)
def ops(request: pytest.FixtureRequest, device: torch.device) -> Ops:
    if request.param == "library":
        return LibraryOps()
    pdl = request.param == "pdl"
    if pdl and not supports_pdl():
        pytest.skip("needs a Hopper GPU")
    return FusedOps(Workspace(1 << 18, device), pdl=pdl)


def admissions(model: SpeechModules) -> list[Admission]:
    def prompt(text: str, voice: str) -> PromptIds:
        known = model.voices[voice]
        return model.tokenizer.assemble(
            SpeechPrompt(
                text,
                prompt_text=known.text,
                prompt_patches=len(known.embeds),
                speakers=0 if known.speaker is None else 1,
            )
        )

    voices = dict(zip(TEXTS, ("DB30", "plain_en", "DB30"), strict=True))
    return [
        Admission(
            slot,
            MingSpeechInput(prompt(text, voices[slot]), model.voices[voices[slot]], SAMPLING[slot]),
            seed=slot - 1,
            segment=slot,
        )
        for slot, text in TEXTS.items()
    ]


def plain_slots(model: SpeechModules, starts: list[Admission]) -> TalkerSlots:
    """The plain slots after the same prompts."""
    slots = TalkerSlots(model.talker, SLOTS, CONTEXT)
    with torch.inference_mode():
        for one in starts:
            voice = one.input.voice
            speakers = None if voice.speaker is None else voice.speaker[None]
            embeddings = embed_prompt(model.talker, one.input.prompt, speakers, voice.embeds)
            history = build_initial_history(model.talker, voice.latents)
            slots.prefill(one.slot, embeddings, history, one.seed, one.segment, one.input.sampling)
    return slots


@pytest.fixture
def ops_for(ops: Ops, device: torch.device) -> OpsSelector:
    """These ops for most rows; for the few at the end of the blocks always the fused ones."""
    fused = FusedOps(Workspace(1 << 18, device))
    return lambda rows: fused if rows < 64 else ops


def prefilled(
    model: SpeechModules, starts: list[Admission], ops: Ops
) -> tuple[SlotState, FastStep]:
    """State and step after a packed prefill."""
    state = SlotState(model.talker, SLOTS, CONTEXT)
    step = FastStep(model.talker, state)
    voices = VoiceTable(model.talker, model.voices)
    prefill = PackedPrefill(model.talker, step.backbone, state, voices)
    size = sum(len(one.input.prompt.ids) - 1 for one in starts) + 5
    packed = pack_prompts(starts, voices, size, state.spare)
    device = state.ring.device
    with torch.inference_mode():
        tokens, prompts = (
            torch.from_numpy(part).to(device) for part in (packed.tokens, packed.prompts)
        )
        prefill.run(tokens, prompts, ops)
    return state, step


def assert_filled(state: SlotState, starts: list[Admission], expected: TalkerSlots) -> None:
    """The slots hold what prompts that were prefilled alone leave in them."""
    for slot in (start.slot for start in starts):
        length = int(expected.lengths[slot])
        assert int(state.lengths[slot]) == length
        for ours, theirs in ((state.keys, expected.keys), (state.values, expected.values)):
            assert_close(ours[:, slot, :, :length], theirs[:, slot, :, :length], TOLERANCE)
        assert_close(state.next_embed[slot], expected.next_embed[slot], TOLERANCE)
        past = state.ring[slot, : state.past].flatten(0, 1)
        assert_close(past, expected.history[slot], TOLERANCE)
        for one, other in (("seeds", "seed"), ("segments", "segment"), ("patches", "patch")):
            assert int(getattr(state, one)[slot]) == int(getattr(expected, other)[slot])


def test_packed_prompts_and_steps_at_different_phases_equal_the_plain_ones(
    plain: SpeechModules, model: SpeechModules, ops: Ops, ops_for: OpsSelector
) -> None:
    starts = admissions(model)[:STARTS]
    state, step = prefilled(model, starts, ops)
    expected = plain_slots(plain, starts)
    assert_filled(state, starts, expected)
    device = state.ring.device
    for slots in TURNS:
        index = torch.tensor(slots, device=device)
        longest = int(expected.lengths[index].max())
        theirs = run_decode_step(plain.talker, expected, index, expected.select_span(longest))
        padded = torch.tensor([*slots, *SPARES * [state.spare]], device=device)
        with torch.inference_mode():
            hidden, stop = step.run_backbone(padded, ops)
            step.sample_patch(padded, hidden, ops_for)
        made = state.ring[index, state.entry(state.patches[index] - 1)]
        assert_close(made, theirs.latents, TOLERANCE, f"latents of {slots}")
        torch.testing.assert_close(stop[: len(slots)], theirs.stop, atol=TOLERANCE, rtol=0)
        assert_close(state.next_embed[index], expected.next_embed[index], TOLERANCE)
    assert int(state.lengths[state.spare]) == 0


def test_units_equal_the_plain_stream(plain: SpeechModules, model: SpeechModules, ops: Ops) -> None:
    """Two slots, the second two patches behind the first."""
    state = SlotState(model.talker, SLOTS, CONTEXT)
    vocoder, streams = FastVocoder(model.vae, state, 8), VaeSlots(plain.vae, SLOTS, 4)
    device, longest = state.ring.device, max(UNITS.values())
    generator = torch.Generator().manual_seed(0)
    latents = torch.randn(SLOTS, longest, 4, 64, generator=generator).to(device)

    def unit(slot: int, patch: int, final: bool) -> torch.Tensor:
        index, patches, ended = (
            torch.tensor([value], device=device) for value in (slot, patch, final)
        )
        return vocoder.decode(index, patches, ended, ops)[0].cpu()

    full = vocoder.unit_samples
    for time in range(longest + 2):
        for slot, patch in ((1, time), (3, time - 2)):
            if not 0 <= patch < UNITS[slot]:
                continue
            ends = patch == UNITS[slot] - 1
            row = latents[slot, patch][None]
            expected = streams.decode(torch.tensor([slot]), row, torch.tensor([ends]))[0]
            state.ring[slot, state.entry(torch.tensor(patch))] = row[0]
            state.ring[slot, state.entry(torch.tensor(patch + 1))] = torch.nan
            pieces = []
            with torch.inference_mode():
                if patch:
                    start = vocoder.crop if patch == 1 else 0
                    pieces.append(unit(slot, patch - 1, False)[start:full])
                if ends:
                    pieces.append(unit(slot, patch, True))
            ours = torch.cat([torch.zeros(0), *pieces])
            if len(expected) or len(ours):
                assert_close(ours, expected.cpu(), TOLERANCE, f"slot {slot}, patch {patch}")


def test_a_pass_takes_as_many_prompts_as_fit(model: SpeechModules) -> None:
    starts = admissions(model)
    lengths = [len(one.input.prompt.ids) - 1 for one in starts]
    assert count_fitting(starts, sum(lengths)) == 3
    assert count_fitting(starts, sum(lengths) - 1) == 2
    assert count_fitting(starts, lengths[0]) == 1
    assert count_fitting(starts * MAX_PROMPTS, 10**6) == MAX_PROMPTS
