"""Stages 1 to 3 for one medium: fetch it, decode it unless its embedding is cached, encode it."""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from sglang_omni.engines.encoder.cache import Embedding
from sglang_omni.engines.encoder.client import EncoderClient
from sglang_omni.engines.encoder.contract import AudioEncodeRequest, VisionEncodeRequest
from sglang_omni.engines.media_decoder.contract import Decoded
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.media.fetch import FetchPolicy, fetch_all
from sglang_omni.media.limits import Kind, MediaRules, PixelBudget, VideoOptions
from sglang_omni.models.chat import PromptAudio, PromptImage, PromptVideo
from sglang_omni.models.media_format import Grid, MediaFormat
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.request import MediaPart
from sglang_omni.protocol.errors import MEDIA_REFUSED, InvalidRequest
from sglang_omni.queueing.policy import Capacity, Priority
from sglang_omni.queueing.queue import AdmissionQueue, QueueRules

KEY_BYTES = 16
# How many media may have their files in memory at once, in total and per tenant. Other media wait
# unread for as long as their requests may take.
MAX_OPEN_MEDIA, MAX_OPEN_MEDIA_PER_TENANT = 32, 16
# An image that is not for the encoder keeps its size, unless it is very large.
ORIGINAL_SIZE = PixelBudget(factor=1, min_pixels=1, max_pixels=1 << 24)
MEDIA_QUEUE_RULES = QueueRules(max_length=512, max_wait_s=86_400.0)


class MediaDecoder(Protocol):
    """The media decoder processes."""

    async def decode(
        self,
        kind: Kind,
        files: Sequence[bytes],
        image: PixelBudget | None,
        *,
        tenant: str | None = None,
        video: VideoOptions = ...,
    ) -> tuple[Decoded, SharedArray]:
        """Decode files into a new array. Raises `InvalidRequest` if they cannot be decoded."""
        ...


@dataclass(frozen=True)
class MediaInput:
    """A medium of a request, with what the prompt needs to know of it.

    `key` identifies its content and its decode options. `grid` is the patch grid of an image or
    video (time, rows, columns), None for audio. `tokens` is the number of feature rows per time
    step of an image or video, or of the whole audio clip. `seconds` are the times of a video's
    frame pairs. `content` is the decoded data to encode, None if `embedding` is already known.
    `sound` is the sound of a video, which follows it in the prompt.
    """

    part: MediaPart
    key: bytes
    tokens: int
    grid: Grid | None = None
    seconds: tuple[float, ...] = ()
    content: tuple[Decoded, SharedArray] | None = None
    embedding: Embedding | None = None
    sound: "MediaInput | None" = None

    @property
    def rows(self) -> int:
        """Return the number of placeholder tokens in the prompt."""
        return self.tokens * (self.grid[0] if self.grid else 1)

    @property
    def prompt_items(self) -> tuple[PromptImage | PromptVideo | PromptAudio, ...]:
        """Return the placeholders of this medium and of its sound."""
        return (self.prompt_item, self.sound.prompt_item) if self.sound else (self.prompt_item,)

    @property
    def prompt_item(self) -> PromptImage | PromptVideo | PromptAudio:
        """Return the placeholder of this medium in the prompt."""
        if self.grid is None:
            return PromptAudio(self.tokens)
        return PromptVideo(self.tokens, self.seconds) if self.seconds else PromptImage(self.tokens)


def list_inputs(media: Iterable[MediaInput]) -> list[MediaInput]:
    """Return media in the order of the prompt: each video before its sound."""
    return [one for medium in media for one in (medium, medium.sound) if one is not None]


def create_media_queue() -> AdmissionQueue:
    """Return a queue that bounds how many media are in memory, fair between tenants."""
    capacity = Capacity(MAX_OPEN_MEDIA, per_tenant=MAX_OPEN_MEDIA_PER_TENANT)
    return AdmissionQueue("media loader", lambda: capacity, MEDIA_QUEUE_RULES)


class MediaPreprocessor:
    """Turn the media parts of all requests of a server into embeddings."""

    def __init__(
        self,
        policy: FetchPolicy,
        media_format: MediaFormat,
        media_decoders: MediaDecoder,
        encoders: Mapping[Kind, EncoderClient],
        media_queue: AdmissionQueue | None = None,
    ) -> None:
        """Use `encoders`, one for each accepted kind of media; a text-only server has none.

        `media_queue` is shared with all other users that fetch files.
        """
        self._policy, self._format = policy, media_format
        self._media_decoders, self._encoders = media_decoders, encoders
        self._media_queue = media_queue or create_media_queue()

    async def open(
        self,
        part: MediaPart,
        use_cache: bool = True,
        tenant: str | None = None,
        priority: Priority = "normal",
    ) -> MediaInput:
        """Fetch a medium, and decode it unless `use_cache` is set and its embedding is cached.

        Raises `InvalidRequest`, naming the part's field.
        """
        with with_error_field(part.field):
            if part.kind not in self._encoders:
                raise InvalidRequest("this server accepts text only; remove the media")
            async with self._media_queue.admit(tenant, priority):
                return await self._open(part, use_cache, tenant)

    async def fetch(self, part: MediaPart, tenant: str | None = None) -> bytes:
        """Return the content of a file. Raises `InvalidRequest`, naming the part's field."""
        with with_error_field(part.field):
            async with self._media_queue.admit(tenant, "normal"):
                (content,) = await fetch_all(part.sources, self._policy, tenant)
                return content

    async def decode_original(
        self, part: MediaPart, file: bytes, tenant: str | None = None
    ) -> tuple[Decoded, SharedArray]:
        """Decode an image in its own size, uint8 [1, height, width, 3].

        Raises `InvalidRequest`, naming the part's field.
        """
        with with_error_field(part.field):
            return await self._media_decoders.decode("image", [file], ORIGINAL_SIZE, tenant=tenant)

    async def _open(self, part: MediaPart, use_cache: bool, tenant: str | None) -> MediaInput:
        files = await fetch_all(part.sources, self._policy, tenant)
        medium = await self._open_files(part, files, use_cache, tenant)
        if part.kind != "video" or part.video.sound == "off":
            return medium
        return replace(medium, sound=await self._open_sound(part, files, use_cache, tenant))

    async def _open_sound(
        self, video: MediaPart, files: Sequence[bytes], use_cache: bool, tenant: str | None
    ) -> MediaInput | None:
        """Open the sound of a video as an audio clip. Return None if it has none."""
        if "audio" not in self._encoders:
            return None
        part = replace(video, kind="audio", video=VideoOptions(sound=video.video.sound))
        try:
            sound = await self._open_files(part, files, use_cache, tenant)
        except InvalidRequest:
            if video.video.sound == "required":
                raise
            return None
        return sound if sound.tokens else None

    async def _open_files(
        self, part: MediaPart, files: Sequence[bytes], use_cache: bool, tenant: str | None
    ) -> MediaInput:
        key = await asyncio.to_thread(hash_content, part, files, self._format.rules)
        cached = self._encoders[part.kind].get_cached(key) if use_cache else None
        if cached is not None:
            return self._from_cache(part, key, cached)
        decoded, array = await self._media_decoders.decode(
            part.kind,
            files,
            get_pixel_budget(part, self._format.rules.image),
            tenant=tenant,
            video=part.video,
        )
        return self._from_decoded(part, key, decoded, array)

    async def encode(self, medium: MediaInput) -> Embedding:
        """Return the feature rows of a medium. Raises `InvalidRequest`, naming the part's field."""
        if medium.embedding is not None:
            return medium.embedding
        assert medium.content is not None
        decoded, array = medium.content
        rows = SharedArray()
        request: VisionEncodeRequest | AudioEncodeRequest
        if medium.grid is None:
            request = AudioEncodeRequest(array, decoded.layout, rows)
        else:
            request = VisionEncodeRequest(array, decoded.layout, rows)
        encoder = self._encoders[medium.part.kind]
        stage_name = "audio_encoder" if medium.grid is None else "image_encoder"
        with with_error_field(medium.part.field), stage(stage_name) as span:
            return await encoder.encode(medium.key, request, medium.grid, medium.seconds, span)

    def _from_decoded(
        self, part: MediaPart, key: bytes, decoded: Decoded, array: SharedArray
    ) -> MediaInput:
        shape, content = decoded.layout.shape, (decoded, array)
        if part.kind == "audio":
            tokens = self._format.audio_tokens(shape[0]) if shape[0] else 0
            return MediaInput(part, key, tokens, content=content)
        grid = self._format.patch_grid(shape)
        tokens = self._format.image_tokens(grid)
        return MediaInput(part, key, tokens, grid, decoded.seconds, content)

    def _from_cache(self, part: MediaPart, key: bytes, cached: Embedding) -> MediaInput:
        grid = cached.grid
        tokens = self._format.image_tokens(grid) if grid else cached.layout.shape[0]
        return MediaInput(part, key, tokens, grid, cached.seconds, embedding=cached)


def get_pixel_budget(part: MediaPart, rules: PixelBudget) -> PixelBudget | None:
    """Return the sizes of an image that must be smaller than `rules` allow; else None."""
    largest = part.max_pixels
    if largest is None:
        return None
    return PixelBudget(rules.factor, min(rules.min_pixels, largest), largest)


def hash_content(part: MediaPart, files: Sequence[bytes], rules: MediaRules) -> bytes:
    """Return a key that is equal only for equal files decoded with equal options."""
    # Whether a sound is required changes errors only, and pictures are the same without it.
    is_video_sound = part.kind == "audio" and part.video.sound != "off"
    options = (part.kind, part.max_pixels, part.video.fps, part.video.max_frames, is_video_sound)
    digest = hashlib.blake2b(repr((*options, rules)).encode(), digest_size=KEY_BYTES)
    for file in files:
        digest.update(len(file).to_bytes(8, "little"))
        digest.update(file)
    return digest.digest()


@contextmanager
def with_error_field(field: str) -> Iterator[None]:
    """Raise an `InvalidRequest` of the body again, naming the field that holds the medium.

    It is a new error because requests that share an encoding share its error.
    """
    try:
        yield
    except InvalidRequest as error:
        named = type(error)(f"{field}: {error.message}", param=field)
        named.reason = MEDIA_REFUSED
        raise named from error
