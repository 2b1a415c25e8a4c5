"""The media of a golden prompt as the thinker engine takes them."""

import hashlib
from typing import Any

import numpy as np

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.engines.thinker.contract import Features, ThinkerRequest
from sglang_omni.media.limits import Kind
from sglang_omni.protocol.sampling import SamplingParams
from tests.models.ming.thinker.prompts import visual_blocks
from tests.testing.golden import Case


def greedy_request(case: Case, config: Any) -> ThinkerRequest:
    """A greedy request for as many tokens as the case stores."""
    sampling = SamplingParams(max_tokens=len(case["generated_ids"]), temperature=0.0)
    features = (*visual_features(case, config), *audio_features(case))
    return ThinkerRequest(tuple(case["input_ids"].tolist()), sampling, features)


def visual_features(case: Case, config: Any) -> list[Features]:
    """One item for each image or video frame, with its rows of the stored features."""
    items, taken = [], {"image": 0, "video": 0}
    for block in visual_blocks(case, config):
        is_image = case["input_ids"][block.start] == config.llm_config.image_patch_token
        kind: Kind = "image" if is_image else "video"
        first = taken[kind]
        taken[kind] += block.tokens
        rows = case[f"{kind}_embeds"][first : taken[kind]].numpy()
        grid = (block.frames, block.rows * 2, block.columns * 2)
        run = (block.start, block.start + block.tokens - 1)
        items.append(Features(kind, *shared(rows), (run,), content_hash(rows), (grid,)))
    return items


def audio_features(case: Case) -> list[Features]:
    """One item for each clip."""
    items, taken = [], 0
    for start, length in (
        case.tensors["audio_loc_lens"].tolist() if "audio_embeds" in case.tensors else []
    ):
        rows = case["audio_embeds"][taken : taken + length].numpy()
        run = (start, start + length - 1)
        items.append(Features("audio", *shared(rows), (run,), content_hash(rows)))
        taken += length
    return items


def shared(rows: np.ndarray) -> tuple[SharedArray, Layout]:
    """Rows as the encoder engines leave them."""
    array = SharedArray()
    return array, array.write(rows)


def content_hash(rows: np.ndarray) -> int:
    """A hash as the pipeline makes it, of the rows themselves."""
    return int.from_bytes(hashlib.blake2b(rows.tobytes(), digest_size=8).digest(), "little")
