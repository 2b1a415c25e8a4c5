"""SGLang's multimodal processor for Ming: media in, items, places and positions out.

Our server sends ready features with the token runs they belong to. The stock server sends what
its clients sent; that is fetched and decoded here, under the same limits as in our server.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from sglang.srt.managers.schedule_batch import (
    Modality,
    MultimodalDataItem,
    MultimodalProcessorOutput,
)
from sglang.srt.multimodal.processors.base_processor import BaseMultimodalProcessor

from sglang_omni.media.decode import decode_medium
from sglang_omni.media.fetch import FetchPolicy, fetch
from sglang_omni.media.limits import Kind, MediaLimits
from sglang_omni.models.ming.media_rules import RULES
from sglang_omni.models.ming.prompt.positions import VisualBlock, positions
from sglang_omni.models.ming.thinker.model import BailingMM2NativeForConditionalGeneration
from sglang_omni.models.ming.thinker.placeholders import PlaceholderExpander, PlaceholderMedium
from sglang_omni.protocol.errors import InvalidRequest

MODALITIES = {"image": Modality.IMAGE, "video": Modality.VIDEO, "audio": Modality.AUDIO}


class MingProcessor(BaseMultimodalProcessor):
    """Takes each image, video or clip as SGLang's clients name it, or ready, as a dictionary:

    `modality` image | video | audio; `feature` float tensor [tokens, hidden], or what unpickles as
    one; `offsets`, a list of inclusive (first, last) token runs; `grid`, the patch grid (t, h, w)
    of each run, for visual items; `hash`, the integer content hash.
    """

    models: ClassVar = [BailingMM2NativeForConditionalGeneration]

    async def process_mm_data_async(
        self,
        image_data: Sequence[Any] | None,
        audio_data: Sequence[Any] | None,
        input_text: str | list[int],
        request_obj: Any,
        **_: Any,
    ) -> MultimodalProcessorOutput:
        """Build the items and positions of one request. Raises `InvalidRequest`."""
        media = [*(image_data or ()), *(audio_data or ()), *(request_obj.video_data or ())]
        if all(isinstance(entry, dict) for entry in media) and not isinstance(input_text, str):
            return self._output(list(input_text), media)
        given: dict[Kind, Sequence[Any]] = {
            "image": image_data or (),
            "audio": audio_data or (),
            "video": request_obj.video_data or (),
        }
        opened = await asyncio.gather(
            *(open_medium(kind, entry) for kind, entries in given.items() for entry in entries)
        )
        ids = self._encode(input_text) if isinstance(input_text, str) else input_text
        return self._output(*PlaceholderExpander(self._encode).expand(ids, opened))

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _output(self, ids: list[int], media: Sequence[dict[str, Any]]) -> MultimodalProcessorOutput:
        llm = self.hf_config.llm_config
        blocks = sorted((b for entry in media for b in _blocks(entry)), key=lambda b: b.start)
        table, delta = positions(len(ids), blocks)
        return MultimodalProcessorOutput(
            mm_items=[_item(entry) for entry in media],
            input_ids=ids,
            im_token_id=llm.image_patch_token,
            video_token_id=llm.video_patch_token,
            audio_token_id=next((ids[e["offsets"][0][0]] for e in media if _is_audio(e)), None),
            mrope_positions=torch.from_numpy(table),
            mrope_position_delta=torch.tensor([[delta]]),
        )


async def open_medium(kind: Kind, source: Any) -> PlaceholderMedium:
    """Fetch and decode what a client of the stock server named. Raises `InvalidRequest`."""
    address = getattr(source, "url", source)
    if not isinstance(address, str):
        raise InvalidRequest(f"{kind} data must be a URL or data URI, not {type(source).__name__}")
    file = await fetch(address, FetchPolicy())
    array, seconds = await asyncio.to_thread(decode_medium, kind, (file,), MediaLimits(), RULES)
    return PlaceholderMedium(kind, torch.from_numpy(array), _hash(kind.encode() + file), seconds)


def _is_audio(entry: dict[str, Any]) -> bool:
    return entry["modality"] == "audio"


def _blocks(entry: dict[str, Any]) -> list[VisualBlock]:
    """The visual blocks of an item; audio has none."""
    if _is_audio(entry):
        return []
    return [
        VisualBlock(first, time, height // 2, width // 2)
        for (first, _), (time, height, width) in zip(entry["offsets"], entry["grid"], strict=True)
    ]


def _item(entry: dict[str, Any]) -> MultimodalDataItem:
    """SGLang's item: with ready features, or with `content` for the model to encode."""
    item = MultimodalDataItem(
        modality=MODALITIES[entry["modality"]],
        offsets=[tuple(run) for run in entry["offsets"]],
        feature=entry.get("content"),
        precomputed_embeddings=entry.get("feature"),
        hash=entry["hash"],
    )
    item.set_pad_value()
    return item


def _hash(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
