"""The talker's training pass: all patches of an utterance at once, on the product's modules.

It equals the product's loop, step by step, if that continues from the same patches
(`tests/cookbook/test_flow.py`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cookbook.ming_mini.batches import HISTORY, Batch
from cookbook.ming_mini.compilation import Runner, run_eager
from cookbook.ming_mini.utterances import PatchStore
from sglang_omni.models.ming.speech.talker import Backbone, Talker

LATENT_SECONDS = 0.08
NO_CONDITION = 0.12
"""Share of patches that are trained without their condition, for classifier-free guidance."""
NO_HISTORY, NO_AUDIO = 0.2, 0.15
"""Shares of patches trained without their history, and of patches that the backbone misses.

What was just said tells so much about what follows that the text is not read for thousands of
steps; where it is missing, the text must tell.
"""
GUIDED_LAYERS, GUIDED_HEADS = (1, 2), 2
LEAD_SECONDS = 0.06


@dataclass(frozen=True)
class DeviceBatch:
    """A `Batch` on the device."""

    ids: Tensor
    audio: Tensor
    audio_row: Tensor
    audio_count: Tensor
    history: Tensor
    target: Tensor
    patches: Tensor
    state: Tensor
    text: Tensor
    seconds: Tensor
    chosen: Tensor

    @property
    def states(self) -> Tensor:
        """Return the rows [B, P] whose outputs make the patches.

        After the end of an utterance it is the last row.
        """
        steps = torch.arange(self.target.shape[1], device=self.state.device)
        return self.state[:, None] + torch.minimum(steps, self.patches[:, None] - 1)

    @property
    def exists(self) -> Tensor:
        """Return which of the patches [B, P] exist."""
        steps = torch.arange(self.target.shape[1], device=self.state.device)
        return steps < self.patches[:, None]


def host_tensors(batch: Batch) -> tuple[Tensor, ...]:
    """Return a batch's arrays in the order of `DeviceBatch`."""
    return tuple(torch.from_numpy(getattr(batch, field.name)) for field in fields(DeviceBatch))


def mean_over(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the values where `mask`, which is not empty; reads nothing on the host."""
    return torch.where(mask, values, 0).sum() / mask.sum()


class TrainingContext:
    """Causal attention, in which some heads are guided to the right place in the text.

    `misplaced` sums, over the guided layers, the mean attention to the wrong places.
    """

    def __init__(
        self, stack: Backbone, x: Tensor, arrays: DeviceBatch | None, patch_seconds: float
    ) -> None:
        positions = torch.arange(x.shape[1], device=x.device)
        self.cos, self.sin = stack.compute_tables(positions[None], x.dtype)
        self._arrays = arrays
        self._wrong = None
        if arrays is not None:
            self._wrong = attention_penalty(arrays, x.shape[1], patch_seconds)
        self.misplaced = x.new_zeros((), dtype=torch.float32)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend causally, and add to `misplaced` in the guided layers."""
        if self._arrays is not None and layer in GUIDED_LAYERS:
            self.misplaced = self.misplaced + self._misplaced(self._arrays, q, k)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    def _misplaced(self, arrays: DeviceBatch, q: Tensor, k: Tensor) -> Tensor:
        """Return the attention of the first heads to wrong rows.

        These heads share the first key head.
        """
        rows = arrays.states[:, None, :, None].expand(-1, GUIDED_HEADS, -1, q.shape[-1])
        chosen = q[:, :GUIDED_HEADS].gather(2, rows)
        scores = (chosen @ k[:, :1].mT).float() / math.sqrt(q.shape[-1])
        places = torch.arange(k.shape[2], device=k.device)
        later = places > arrays.states[:, None, :, None]
        attention = scores.masked_fill(later, -torch.inf).softmax(-1)
        assert self._wrong is not None
        wrong = (attention * self._wrong[:, None]).sum(-1).mean(1)
        return mean_over(wrong, arrays.exists)


def attention_penalty(arrays: DeviceBatch, length: int, patch_seconds: float) -> Tensor:
    """Return the penalty of attending to each row at each patch: [B, P, length] in [0, 1].

    Speech moves through its text at about an even pace. The row of the expected character has no
    penalty, its neighbours little, and rows outside the text the full penalty.
    """
    steps = torch.arange(arrays.target.shape[1], device=arrays.ids.device)
    start, end = arrays.text[:, :1].float(), arrays.text[:, 1:].float()
    spoken = (arrays.seconds[:, None].float() - 2 * LEAD_SECONDS).clamp_min(0.1)
    share = (((steps + 0.5) * patch_seconds - LEAD_SECONDS) / spoken).clamp(0, 1)
    due = (start + share * (end - start))[..., None]
    width = (2.5 + 0.08 * (end - start))[..., None]
    places = torch.arange(length, device=arrays.ids.device)
    wrong = 1 - torch.exp(-0.5 * ((places - due) / width).square())
    inside = (places >= start[..., None]) & (places < end[..., None])
    return torch.where(inside, wrong, 1.0)


@dataclass(frozen=True)
class PassOutput:
    """The output of a training pass.

    Per patch [B, P] it has the state [hidden] and the history [32, 64].
    """

    hidden: Tensor
    history: Tensor
    misplaced: Tensor


def teacher_forced(
    talker: Talker,
    arrays: DeviceBatch,
    heard: Tensor,
    primed: Tensor,
    past: Tensor,
    guided: bool = True,
    run: Runner = run_eager,
) -> PassOutput:
    """Run the backbone over prompts and utterances.

    `heard` [B, A, 4, 64] are the latents of `arrays.audio`, `primed` [B, 8, 4, 64] those of the
    history, and `past` [B, P, 4, 64] those of the utterance, as the flow model will see them. `run`
    runs the backbone.
    """
    x = embed(talker, arrays, heard)
    patch = past.shape[2]
    guide = arrays if guided else None
    context = TrainingContext(talker.model, x, guide, patch * LATENT_SECONDS)
    out = run(talker.model, x, context)
    rows = arrays.states[..., None].expand(-1, -1, out.shape[-1])
    before = torch.cat((primed, past), dim=1).flatten(1, 2)
    windows = before.unfold(1, HISTORY * patch, patch)[:, : past.shape[1]]
    return PassOutput(out.gather(1, rows), windows.mT, context.misplaced)


def embed(talker: Talker, arrays: DeviceBatch, heard: Tensor) -> Tensor:
    """Return the backbone's input [B, L, hidden].

    Rows are embeddings of ids, or of patches.
    """
    rows = talker.model.embed_tokens(arrays.ids)
    if heard.shape[1] == 0:
        return rows
    voices = talker.aggregator(heard.flatten(0, 1)).unflatten(0, heard.shape[:2]).to(rows.dtype)
    order = torch.arange(rows.shape[1], device=rows.device) - arrays.audio_row[:, None]
    is_audio = (order >= 0) & (order < arrays.audio_count[:, None])
    index = order.clamp(0, heard.shape[1] - 1)[..., None].expand(-1, -1, rows.shape[-1])
    return torch.where(is_audio[..., None], voices.gather(1, index), rows)


@dataclass(frozen=True)
class TalkerLosses:
    """The mean losses of a step."""

    flow: Tensor
    stop: Tensor
    misplaced: Tensor
    sketch: Tensor


class PatchPredictor(nn.Module):
    """Predict a patch from the backbone's state alone; used only in training.

    The flow model sees the state through noise. This gives the backbone a direct gradient.
    """

    def __init__(self, hidden: int, patch: int) -> None:
        """Build it for patches of `patch` numbers altogether."""
        super().__init__()
        self.guess = nn.Sequential(
            nn.Linear(hidden, 2 * hidden), nn.SiLU(), nn.Linear(2 * hidden, patch)
        )

    def forward(self, hidden: Tensor, aim: Tensor) -> Tensor:
        """Return the mean squared error for states [n, hidden] and patches `aim` [n, 4, latent]."""
        return F.mse_loss(self.guess(hidden).float(), aim.flatten(1))


def drop_patches(patches: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Return patches [..., time, dim] of which a random `share` is all zeros."""
    shape = (*patches.shape[:-2], 1, 1)
    kept = torch.rand(shape, generator=generator, device=patches.device) >= share
    return patches * kept


def gather(
    store: PatchStore, arrays: DeviceBatch, generator: torch.Generator
) -> tuple[Tensor, ...]:
    """Return the latents of the batch: heard, primed, past and the aim.

    The past is noisy, like a voice prompt.
    """
    # The absent patch has no deviation, so it stays zero.
    heard, primed, past = (
        store.sample(index, generator) for index in (arrays.audio, arrays.history, arrays.target)
    )
    return heard, primed, past, store.mean(arrays.target)


def flow_times(count: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Return times [count] in [0, 1]: half uniform, half as dense as the sampler's own schedule."""
    u = torch.rand(count, generator=generator, device=device)
    even = torch.rand(count, generator=generator, device=device) < 0.5
    return torch.where(even, u, 1 - torch.cos(math.pi / 2 * u))


def stop_loss(talker: Talker, hidden: Tensor, arrays: DeviceBatch) -> Tensor:
    """Return the cross entropy of "this patch is the last", over the patches that exist."""
    steps = torch.arange(arrays.target.shape[1], device=hidden.device)
    last = (steps == arrays.patches[:, None] - 1).long()
    logits = talker.stop_head(hidden).float()
    losses = F.cross_entropy(logits.flatten(0, 1), last.flatten(), reduction="none")
    return mean_over(losses, arrays.exists.flatten())


def flow_loss(
    velocity: Callable[..., Tensor],
    hidden: Tensor,
    history: Tensor,
    aim: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """Return the mean squared error of the velocity of patches `aim` [n, 4, 64]; x0 noise, x1 data.

    `velocity` is the flow model's forward; `hidden` [n, hidden], `history` [n, 32, 64].
    """
    device = aim.device
    t = flow_times(len(aim), generator, device)
    noise = torch.randn(aim.shape, generator=generator, device=device)
    kept = torch.rand(len(aim), 1, generator=generator, device=device) >= NO_CONDITION
    x = torch.lerp(noise, aim, t[:, None, None])
    made = velocity(x, t, hidden * kept, history)
    return F.mse_loss(made.float(), aim - noise)
