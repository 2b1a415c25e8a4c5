"""Answers of a packed checkpoint by the plain reference, which a server must reproduce."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cookbook.ming_mini.thinker.dialogs import prompt_ids
from cookbook.ming_mini.thinker.items import Item
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.encoders.attention import load_attention
from sglang_omni.models.ming.encoders.audio import load_audio
from sglang_omni.models.ming.encoders.grid import compute_grid
from sglang_omni.models.ming.encoders.mel import compute_log_mel
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.encoders.vision_reference import load_vision_reference
from sglang_omni.models.ming.prompt.chat import ROLE_END
from sglang_omni.models.ming.prompt.positions import compute_positions, find_visual_blocks
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.reference import load_reference
from sglang_omni.models.ming.thinker.routing import AUDIO, IMAGE


@dataclass(frozen=True)
class EncodedPrompt:
    """A prompt as the engine takes it.

    It has ids [n], positions [3, n] with their delta, routes [n], and the feature rows [rows,
    hidden] of its media, if any.
    """

    ids: tuple[int, ...]
    positions: Tensor
    delta: int
    routes: Tensor
    rows: Tensor | None


class Answerer:
    """The reference of a checkpoint, thinker and encoders, in float32 on the CPU."""

    def __init__(self, checkpoint: Path) -> None:
        """Load it strictly. Raises `CheckpointError`."""
        self.config = MingConfig.from_pretrained(checkpoint)
        self.tokenizer = ThinkerTokenizer(checkpoint)
        self._vision_config = read_encoder_config(checkpoint).vision
        self._thinker = load_reference(checkpoint, self.config.llm_config)
        self._vision = load_vision_reference(checkpoint)
        attention = load_attention("sdpa")
        self._audio = load_audio(checkpoint, attention, torch.device("cpu"), torch.float32)

    @torch.no_grad()
    def build_prompt(self, item: Item, clip: np.ndarray | None = None) -> EncodedPrompt:
        """Build the prompt of an item; `clip` is its speech, int16 [samples] at 16 kHz."""
        rows = self._features(item, clip)
        ids = np.array(prompt_ids(self.tokenizer, item, 0 if rows is None else len(rows)))
        llm = self.config.llm_config
        grids = []
        if item.scene:
            height, width = item.scene.size
            grids.append((1, height // 16, width // 16))
        blocks = find_visual_blocks(ids, llm.image_patch_token, llm.video_patch_token, grids, ())
        table, delta = compute_positions(len(ids), blocks)
        routes = np.where(ids == llm.image_patch_token, IMAGE, 0)
        routes[ids == self.tokenizer.token_id("<audioPatch>")] = AUDIO
        placed = torch.from_numpy(table), delta, torch.from_numpy(routes)
        return EncodedPrompt(tuple(ids.tolist()), *placed, rows)

    def _features(self, item: Item, clip: np.ndarray | None) -> Tensor | None:
        if item.scene:
            frames = torch.from_numpy(item.scene.draw().copy())[None]
            grid = compute_grid(frames.shape, self._vision_config)
            return self._vision(patchify(frames, self._vision_config), [grid])
        if clip is None:
            return None
        mel = compute_log_mel(torch.from_numpy(clip.astype(np.float32) / 32768), 128)
        return self._audio([mel])[0]

    @torch.no_grad()
    def tokens(self, asked: EncodedPrompt, most: int) -> list[int]:
        """Return at most `most` greedy tokens, including the token that ends the answer."""
        keys, end = self._thinker.new_cache(), self.tokenizer.token_id(ROLE_END.token)
        embed = self._thinker.model.word_embeddings
        x = embed(torch.tensor(asked.ids))
        if asked.rows is not None:
            x[asked.routes > 0] = asked.rows
        table, routes, said = asked.positions, asked.routes, list[int]()
        while len(said) < most and (not said or said[-1] != end):
            said.append(int(self._thinker(x, table, routes, keys)[-1].argmax()))
            x = embed(torch.tensor(said[-1:]))
            table = torch.full((3, 1), len(asked.ids) + len(said) - 1 + asked.delta)
            routes = torch.zeros(1, dtype=torch.long)
        return said

    def answer(self, item: Item, clip: np.ndarray | None = None, most: int = 96) -> str:
        """Return the text of the answer."""
        return self.tokenizer.decode(self.tokens(self.build_prompt(item, clip), most))
