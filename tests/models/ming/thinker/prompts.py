"""Golden thinker prompts as the inputs of the reference and of the engine."""

from typing import Any

import torch

from sglang_omni.models.ming.prompt.positions import (
    VisualBlock,
    compute_positions,
    find_visual_blocks,
)
from sglang_omni.models.ming.thinker.routing import AUDIO, IMAGE, TEXT
from tests.testing.golden import Case


def grids(case: Case, kind: str) -> list[tuple[int, int, int]]:
    """Patch grids (t, h, w) of the images or videos of a case."""
    stored = case.tensors.get(f"{kind}_grid_thw", torch.empty(0, 3, dtype=torch.long))
    return [(time, height, width) for time, height, width in stored.tolist()]


def visual_blocks(case: Case, config: Any) -> list[VisualBlock]:
    """Visual blocks of a golden prompt."""
    llm = config.llm_config
    tokens = llm.image_patch_token, llm.video_patch_token
    ids = case["input_ids"].numpy()
    return find_visual_blocks(ids, *tokens, grids(case, "image"), grids(case, "video"))


def position_table(case: Case, config: Any) -> tuple[torch.Tensor, int]:
    """Positions [3, tokens] and rope delta of a golden prompt."""
    table, delta = compute_positions(len(case["input_ids"]), visual_blocks(case, config))
    return torch.from_numpy(table), delta


def routes(case: Case, config: Any) -> torch.Tensor:
    """Route ids [tokens]."""
    ids, llm = case["input_ids"], config.llm_config
    chosen = torch.full_like(ids, TEXT)
    chosen[(ids == llm.image_patch_token) | (ids == llm.video_patch_token)] = IMAGE
    for start, length in case.tensors.get("audio_loc_lens", torch.empty(0, 2)).tolist():
        chosen[start : start + length] = AUDIO
    return chosen


def embeddings(case: Case, config: Any, table: torch.nn.Embedding) -> torch.Tensor:
    """Token embeddings with placeholder rows replaced by the given features."""
    ids, llm = case["input_ids"], config.llm_config
    rows = table(ids.clamp(max=table.num_embeddings - 1)).clone()
    for token, name in ((llm.image_patch_token, "image"), (llm.video_patch_token, "video")):
        if f"{name}_embeds" in case.tensors:
            rows[ids == token] = case[f"{name}_embeds"]
    if "audio_embeds" in case.tensors:
        rows[routes(case, config) == AUDIO] = case["audio_embeds"]
    return rows
