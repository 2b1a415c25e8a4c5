"""How Ming is asked for an image: implements `ImageFormat`. No torch."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from sglang_omni.models.chat import TokenizedPrompt, Turn
from sglang_omni.models.checkpoint_files import WEIGHTS_FILE
from sglang_omni.models.image import ImagePlan, ImagePrompt
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.image.config import HEAD, read_head_config
from sglang_omni.models.ming.image.query_tokens import append_query_block
from sglang_omni.models.ming.image.sizes import Size, plan_image, select_resolution
from sglang_omni.models.ming.prompt.chat import render_chat
from sglang_omni.models.ming.prompt.format import MingChatFormat
from sglang_omni.models.raw_tensor import read_raw_tensor
from sglang_omni.protocol.errors import CheckpointError

# As the released service counts them: a square of 16 x 16 pixels.
PIXELS_PER_TOKEN = 256


class MingImageFormat:
    """Implements `ImageFormat`."""

    def __init__(self, checkpoint: Path, chat: MingChatFormat) -> None:
        """Read the head's configuration. Raises `CheckpointError`."""
        self._checkpoint, self._tokenizer = checkpoint, chat.tokenizer
        self._head = read_head_config(checkpoint)
        self._width = read_encoder_config(checkpoint).hidden_size
        path = checkpoint / "config.json"
        try:
            self._patch_token: int = read_json(path)["llm_config"]["image_patch_token"]
        except KeyError as error:
            raise CheckpointError(f"{path}: key {error} is missing") from None

    @cached_property
    def query_rows(self) -> np.ndarray:
        """See `ImageFormat`. Raises `CheckpointError`."""
        path, name = self._checkpoint / HEAD / WEIGHTS_FILE, self._head.query_tensor
        rows, shape = read_raw_tensor(path, name), (self._head.num_queries, self._width)
        if rows.shape != shape:
            raise CheckpointError(
                f"{path}: tensor {name!r} has shape {list(rows.shape)}; expected {list(shape)}"
            )
        return rows

    def build_prompt(self, messages: Sequence[Turn]) -> ImagePrompt:
        """See `ImageFormat`. The prompt is that of a chat, without further instructions."""
        rendered = render_chat(messages)
        tokenized = self._tokenizer.encode(rendered)
        query = append_query_block(tokenized.ids, self._patch_token, self._head.num_queries)
        prompt = TokenizedPrompt(query.ids, tokenized.runs)
        return ImagePrompt(prompt, str(rendered), query.run, query.grid)

    def plan(
        self, size: Size | None, aspect: float | None, resolution: int, reference: Size | None
    ) -> ImagePlan:
        """See `ImageFormat`. The tokens are those of the size that the model draws."""
        known = self._head.img_gen_resolutions
        plan = plan_image(size, aspect, resolution, reference, known)
        height, width = plan.bucket
        return ImagePlan(plan.output, height * width // PIXELS_PER_TOKEN)

    def fit_resolution(self, size: Size) -> int:
        """See `ImageFormat`: the class whose square has nearly as many pixels."""
        height, width = size
        side = round((height * width) ** 0.5)
        return select_resolution(side, self._head.img_gen_resolutions)
