"""The talker: Qwen2 backbone, flow sampler, aggregator and heads, and the reference decode loop.

The loop here is the definition (batch 1, growing cache, given noise). The engine in
`sglang_omni/engines/speech` runs the same arithmetic in slots; tests compare the two.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sglang_omni.models.ming.config import Qwen2Config, TalkerConfig, read_talker_config
from sglang_omni.models.ming.speech.cfm import CFM, AnySampling, Sampling
from sglang_omni.models.ming.speech.dit import Aggregator
from sglang_omni.models.ming.speech.noise import sample_gaussian
from sglang_omni.models.ming.speech.qwen2 import Qwen2Stack, build_causal_mask
from sglang_omni.models.weights import TensorFolder, load_strict, use_device_and_dtype

STOP_THRESHOLD = 0.5
ROTARY_BUFFERS = ("cfm.model.rotary_embed.inv_freq", "aggregator.rotary_embed.inv_freq")


class Backbone(Qwen2Stack):
    """The talker's Qwen2 stack with its token embedding."""

    def __init__(self, config: Qwen2Config) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)


class Talker(nn.Module):
    """All modules of `talker/model.safetensors`, under the tensor names of that file."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.config = config
        hidden = config.llm.hidden_size
        self.model = Backbone(config.llm)
        self.cfm = CFM(config.flow, hidden, config.steps)
        self.aggregator = Aggregator(config.aggregator, hidden)
        self.stop_head = nn.Linear(hidden, 2)
        self.spk_head = nn.Linear(config.speaker_dim, hidden)

    def compute_stop_probabilities(self, hidden: Tensor) -> Tensor:
        """Return float32 probabilities [batch, 2] for states [batch, hidden]; index 1 is stop."""
        return F.softmax(self.stop_head(hidden).float(), dim=-1)

    def sample_patch_noise(
        self, seed: Tensor, segment: Tensor, patch: Tensor, sampling: AnySampling
    ) -> tuple[Tensor, Tensor | None]:
        """Return the initial noise and, for a stochastic sampler, the noise of its steps.

        Args:
            seed: int64 [batch].
            segment: int64 [batch].
            patch: int64 [batch].
            sampling: Whether the sampler is stochastic, and its temperature.

        Returns:
            Noise [batch, patch, latent] and noise [batch, steps, patch, latent] or None, in the
            dtype of the weights. The random indices of the second follow those of the first.
        """
        shape = (self.config.patch_size, self.config.latent_dim)
        size = shape[0] * shape[1]
        dtype = self.stop_head.weight.dtype
        y0 = sample_gaussian(seed, segment, patch, size).unflatten(1, shape).to(dtype)
        if not sampling.is_stochastic:
            return y0, None
        sde_noise = sample_gaussian(seed, segment, patch, size * self.config.steps, first=size)
        return y0, sde_noise.unflatten(1, (self.config.steps, *shape)).to(dtype)


def load_talker(folder: Path, device: torch.device, dtype: torch.dtype) -> Talker:
    """Load `model.safetensors` of the talker folder, frozen, in evaluation mode.

    The rotary frequencies are created in float32 and rounded to `dtype`, as in the released model.

    Raises:
        CheckpointError: A tensor is missing, unexpected or has the wrong shape; the message names
            it.
    """
    with use_device_and_dtype(device, dtype):
        talker = Talker(read_talker_config(folder)).to(dtype)
    load_strict(talker, TensorFolder(folder), ignore=ROTARY_BUFFERS.__contains__)
    return talker.eval().requires_grad_(False)


class GrowingCache:
    """Keys and values of one sequence (batch 1), appended pass by pass."""

    def __init__(self, stack: Qwen2Stack) -> None:
        self._stack = stack
        self._kv: list[tuple[Tensor, Tensor] | None] = [None] * len(stack.layers)
        self.length = 0

    def run(self, x: Tensor) -> Tensor:
        """Append embeddings [1, time, hidden] and return the final hidden states, same shape."""
        positions = torch.arange(self.length, self.length + x.shape[1], device=x.device)
        self.cos, self.sin = self._stack.compute_tables(positions[None], x.dtype)
        keys = torch.arange(self.length + x.shape[1], device=x.device)
        self._mask = build_causal_mask(positions, keys, self._stack.config.window)
        self.length += x.shape[1]
        return self._stack(x, self)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Append k and v, then attend over everything stored."""
        stored = self._kv[layer]
        if stored is not None:
            k, v = torch.cat((stored[0], k), dim=2), torch.cat((stored[1], v), dim=2)
        self._kv[layer] = (k, v)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self._mask, enable_gqa=True)


@dataclass(frozen=True)
class Patch:
    """One step of the loop: latents [patch, latent], backbone state and stop probabilities.

    `hidden` and `next_embed` have shape [hidden], `stop_probs` [2]. `last` is true when the stop
    rule or the step limit ends the loop here.
    """

    latents: Tensor
    hidden: Tensor
    next_embed: Tensor
    stop_probs: Tensor
    last: bool


def generate(
    talker: Talker,
    embeddings: Tensor,
    history: Tensor,
    noise: Iterator[tuple[Tensor, Tensor | None]],
    *,
    min_patches: int,
    max_patches: int,
    sampling: Sampling,
) -> Iterator[Patch]:
    """Generate one patch per step from prompt `embeddings`: the reference loop.

    The stop rule is evaluated on the state *before* the patch, and that patch is kept.

    Args:
        talker: The talker.
        embeddings: [length, hidden].
        history: [past, latent], the latents before the first patch.
        noise: Yields (y0, sde_noise) of batch 1 per step.
        min_patches: The number of patches below which the stop rule does not count.
        max_patches: The most patches; the last of them ends the generation.
        sampling: Guidance and noise of the sampler.
    """
    cache = GrowingCache(talker.model)
    x, past = embeddings[None], history[None]
    for step in range(max_patches):
        hidden = cache.run(x)[:, -1]
        y0, sde_noise = next(noise)
        latents = talker.cfm.sample(hidden, past, y0, sde_noise, sampling)
        x = talker.aggregator(latents)[:, None]
        past = torch.cat((past[:, latents.shape[1] :], latents), dim=1)
        probs = talker.compute_stop_probabilities(hidden)[0]
        stop = step > min_patches and probs[1].item() > STOP_THRESHOLD
        last = stop or step + 1 == max_patches
        yield Patch(latents[0], hidden[0], x[0, 0], probs, last)
        if stop:
            return
