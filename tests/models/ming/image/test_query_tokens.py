"""The query block of a prompt, and its positions, as in the released model."""

import pytest
import torch

from sglang_omni.models.ming.image.query_tokens import append_query_block
from sglang_omni.models.ming.prompt.positions import compute_positions, find_visual_blocks
from tests.testing.golden import load_case, require_case

IMAGE_PATCH, FRAME_PATCH = 882, 900
CASES = ("query_text", "query_edit", "query_two_images", "query_padded")


@pytest.mark.parametrize("name", CASES)
def test_ids_and_positions_with_the_query_block(name: str) -> None:
    require_case(f"image/prompt/{name}")
    case = load_case(f"image/prompt/{name}")
    num_queries = sum(scale**2 for scale in case.info["img_gen_scales"])
    grids = [tuple(grid) for grid in case["grid_out"].tolist()]
    for index, (ids, mask) in enumerate(
        zip(case["input_ids"], case["attention_mask"].bool(), strict=True)
    ):
        prompt = append_query_block(ids[mask].tolist(), IMAGE_PATCH, num_queries)
        attended = case["mask_out"][index].bool()
        assert list(prompt.ids) == case["ids_out"][index][attended].tolist()
        first, last = prompt.run
        places = case["gen_mask"][index].nonzero().flatten()
        assert (first, last) == (int(places[0]), int(places[-1]))
        tensor_ids = torch.tensor(prompt.ids).numpy()
        num_blocks = int((tensor_ids == IMAGE_PATCH + 1).sum())
        own = [grids.pop(0) for _ in range(num_blocks)]
        assert own[-1] == prompt.grid
        blocks = find_visual_blocks(tensor_ids, IMAGE_PATCH, FRAME_PATCH, own, [])
        table, delta = compute_positions(len(prompt.ids), blocks)
        expected = case["position_ids"][:, index][:, attended]
        assert torch.equal(torch.from_numpy(table), expected)
        # The released code counts from the padded length.
        padding = len(attended) - len(prompt.ids)
        assert delta - padding == int(case["rope_delta"][index])
