"""The media of a golden prompt as the thinker engine takes them."""

from typing import Any

from sglang_omni.thinker.contract import Features, SamplingParams, ThinkerRequest
from tests.golden import Case
from tests.models.ming.thinker.prompts import visual_blocks


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
        kind = "image" if is_image else "video"
        first = taken[kind]
        taken[kind] += block.tokens
        rows = case[f"{kind}_embeds"][first : taken[kind]].numpy()
        grid = (block.frames, block.rows * 2, block.columns * 2)
        items.append(
            Features(kind, rows, ((block.start, block.start + block.tokens - 1),), (grid,))
        )
    return items


def audio_features(case: Case) -> list[Features]:
    """One item for each clip."""
    items, taken = [], 0
    for start, length in (
        case.tensors["audio_loc_lens"].tolist() if "audio_embeds" in case.tensors else []
    ):
        rows = case["audio_embeds"][taken : taken + length].numpy()
        items.append(Features("audio", rows, ((start, start + length - 1),)))
        taken += length
    return items
