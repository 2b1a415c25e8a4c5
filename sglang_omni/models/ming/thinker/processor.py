"""SGLang's multimodal processor for Ming: from media to items, token ids and positions.

Our server sends ready features with their token runs. The stock server sends what its clients
sent; it is fetched and decoded here, under the same limits as in our server.
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
from sglang_omni.models.ming.prompt.positions import VisualBlock, compute_positions
from sglang_omni.models.ming.thinker.model import BailingMM2NativeForConditionalGeneration
from sglang_omni.models.ming.thinker.placeholders import PlaceholderExpander, PlaceholderMedium
from sglang_omni.models.ming.thinker.query_states import DESTINATION
from sglang_omni.protocol.errors import InvalidRequest

MODALITIES = {"image": Modality.IMAGE, "video": Modality.VIDEO, "audio": Modality.AUDIO}


class MingProcessor(BaseMultimodalProcessor):
    """Accepts each image, video or audio as SGLang's clients send it, or as a prepared dictionary.

    Its keys are `modality`: image | video | audio; `feature`: a float tensor [tokens, hidden], or
    an object that unpickles to one; `offsets`: a list of inclusive (first, last) token runs;
    `grid`: the patch grid (t, h, w) of each run, for visual items; `hash`: the integer content
    hash; and `states`, for query tokens only: where their final states are written.
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
        """Build the items and positions of one request; raise `InvalidRequest` for bad media."""
        media = [*(image_data or ()), *(audio_data or ()), *(request_obj.video_data or ())]
        if all(isinstance(entry, dict) for entry in media) and not isinstance(input_text, str):
            return self._build_output(list(input_text), media)
        sources_by_kind: dict[Kind, Sequence[Any]] = {
            "image": image_data or (),
            "audio": audio_data or (),
            "video": request_obj.video_data or (),
        }
        decoded = await asyncio.gather(
            *(
                load_medium(kind, entry)
                for kind, entries in sources_by_kind.items()
                for entry in entries
            )
        )
        ids = self._encode(input_text) if isinstance(input_text, str) else input_text
        return self._build_output(*PlaceholderExpander(self._encode).expand(ids, decoded))

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _build_output(
        self, ids: list[int], media: Sequence[dict[str, Any]]
    ) -> MultimodalProcessorOutput:
        llm_config = self.hf_config.llm_config
        blocks = sorted(
            (b for entry in media for b in _visual_blocks(entry)), key=lambda b: b.start
        )
        table, delta = compute_positions(len(ids), blocks)
        return MultimodalProcessorOutput(
            mm_items=[_build_item(entry) for entry in media],
            input_ids=ids,
            im_token_id=llm_config.image_patch_token,
            video_token_id=llm_config.video_patch_token,
            audio_token_id=next((ids[e["offsets"][0][0]] for e in media if _is_audio(e)), None),
            mrope_positions=torch.from_numpy(table),
            mrope_position_delta=torch.tensor([[delta]]),
        )


async def load_medium(kind: Kind, source: Any) -> PlaceholderMedium:
    """Fetch and decode media of a client of the stock server; raise `InvalidRequest` on failure."""
    url = getattr(source, "url", source)
    if not isinstance(url, str):
        raise InvalidRequest(f"{kind} data must be a URL or data URI, not {type(source).__name__}")
    file = await fetch(url, FetchPolicy())
    content, seconds = await asyncio.to_thread(decode_medium, kind, (file,), MediaLimits(), RULES)
    return PlaceholderMedium(
        kind, torch.from_numpy(content), _hash_content(kind.encode() + file), seconds
    )


def _is_audio(entry: dict[str, Any]) -> bool:
    return entry["modality"] == "audio"


def _visual_blocks(entry: dict[str, Any]) -> list[VisualBlock]:
    """Return the visual blocks of an item; audio has none."""
    if _is_audio(entry):
        return []
    return [
        VisualBlock(first, time, height // 2, width // 2)
        for (first, _), (time, height, width) in zip(entry["offsets"], entry["grid"], strict=True)
    ]


def _build_item(entry: dict[str, Any]) -> MultimodalDataItem:
    """Build SGLang's item, with ready features or with `content` for the model to encode."""
    item = MultimodalDataItem(
        modality=MODALITIES[entry["modality"]],
        offsets=[tuple(run) for run in entry["offsets"]],
        feature=entry.get("content"),
        precomputed_embeddings=entry.get("feature"),
        hash=entry["hash"],
        model_specific_data={DESTINATION: entry[DESTINATION]} if DESTINATION in entry else {},
    )
    item.set_pad_value()
    return item


def _hash_content(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
