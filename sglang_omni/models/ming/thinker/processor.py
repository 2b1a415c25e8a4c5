"""SGLang's multimodal processor for Ming: ready features in, items and positions out."""

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

from sglang_omni.errors import InvalidRequest
from sglang_omni.models.ming.positions import VisualBlock, positions
from sglang_omni.models.ming.thinker.model import BailingMM2NativeForConditionalGeneration

MODALITIES = {"image": Modality.IMAGE, "video": Modality.VIDEO, "audio": Modality.AUDIO}


class MingProcessor(BaseMultimodalProcessor):
    """Takes each image, video or clip as a dictionary:

    `modality` image | video | audio; `feature` float tensor [tokens, hidden]; `offsets`, a list
    of inclusive (first, last) token runs; `grid`, the patch grid (t, h, w) of each run, for
    visual items; `hash`, the integer content hash, optional.
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
        llm, ids = self.hf_config.llm_config, input_text
        media = [*(image_data or ()), *(audio_data or ()), *(request_obj.video_data or ())]
        if isinstance(ids, str) or not all(isinstance(entry, dict) for entry in media):
            raise InvalidRequest(
                "this build reads text; media must arrive as precomputed embeddings",
                param="messages",
            )
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
    item = MultimodalDataItem(
        modality=MODALITIES[entry["modality"]],
        offsets=[tuple(run) for run in entry["offsets"]],
        precomputed_embeddings=entry["feature"],
        hash=entry.get("hash", _content_hash(entry["feature"])),
    )
    item.set_pad_value()
    return item


def _content_hash(feature: torch.Tensor) -> int:
    data = feature.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
