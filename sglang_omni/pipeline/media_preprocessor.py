"""Stages 1 to 3 for one medium: fetch and decode it, or recall it; then encode it."""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from sglang_omni.admission.policy import Capacity
from sglang_omni.admission.queue import AdmissionQueue, QueueRules
from sglang_omni.engines.encoder.cache import Embedding
from sglang_omni.engines.encoder.client import EncoderClient
from sglang_omni.engines.encoder.contract import AudioEncodeRequest, VisionEncodeRequest
from sglang_omni.engines.media_decoder.contract import Decoded
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.media.fetch import FetchPolicy, fetch_all
from sglang_omni.media.limits import Kind, MediaRules, PixelBudget
from sglang_omni.models.chat import PromptAudio, PromptImage, PromptVideo
from sglang_omni.models.media_format import Grid, MediaFormat
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.request import MediaPart, Priority
from sglang_omni.protocol.errors import MEDIA_REFUSED, InvalidRequest

KEY_BYTES = 16
# Media whose files lie in memory at once, and how many of them are of one tenant; the others wait
# unread, for as long as their requests may take.
OPEN_AT_ONCE, OPEN_PER_TENANT = 32, 16
OPENING = QueueRules(length=512, seconds=86_400.0)


class MediaDecoder(Protocol):
    """The decoding processes."""

    async def decode(
        self,
        kind: Kind,
        files: Sequence[bytes],
        image: PixelBudget | None,
        *,
        tenant: str | None = None,
    ) -> tuple[Decoded, SharedArray]:
        """Decode files into a new array. Raises `InvalidRequest` for what cannot be decoded."""
        ...


@dataclass(frozen=True)
class MediaInput:
    """A medium of a request, as far as the prompt must know it.

    `key` stands for its content and for how it was decoded. `grid` is a picture's patches (time,
    rows, columns), None for a clip. `tokens` counts feature rows of a picture's step of time, or
    of a clip. `content` is what there is to encode, None where `embedding` is known already.
    """

    part: MediaPart
    key: bytes
    tokens: int
    grid: Grid | None = None
    seconds: tuple[float, ...] = ()
    content: tuple[Decoded, SharedArray] | None = None
    embedding: Embedding | None = None

    @property
    def rows(self) -> int:
        """Tokens of the prompt that stand for it."""
        return self.tokens * (self.grid[0] if self.grid else 1)

    @property
    def item(self) -> PromptImage | PromptVideo | PromptAudio:
        """What stands for it in the prompt."""
        if self.grid is None:
            return PromptAudio(self.tokens)
        return PromptVideo(self.tokens, self.seconds) if self.seconds else PromptImage(self.tokens)


def opening_queue() -> AdmissionQueue:
    """Who may have files of media in memory, fairly between tenants."""
    room = Capacity(OPEN_AT_ONCE, per_tenant=OPEN_PER_TENANT)
    return AdmissionQueue("media decoder", lambda: room, OPENING)


class MediaPreprocessor:
    """Turns media parts into embeddings, for all requests of a server, whose engines it uses."""

    def __init__(
        self,
        policy: FetchPolicy,
        media_format: MediaFormat,
        media_decoder: MediaDecoder,
        encoders: Mapping[Kind, EncoderClient],
        room: AdmissionQueue | None = None,
    ) -> None:
        """`encoders` has one for each kind that is taken in; none on a text-only server. `room`
        is shared with whoever else fetches files."""
        self._policy, self._format = policy, media_format
        self._media_decoder, self._encoders = media_decoder, encoders
        self._room = room or opening_queue()

    async def open(
        self,
        part: MediaPart,
        recall: bool = True,
        tenant: str | None = None,
        priority: Priority = "normal",
    ) -> MediaInput:
        """Fetch a medium, and decode it unless its embedding is known and may be recalled.

        Raises `InvalidRequest`, naming the part's field.
        """
        with with_error_field(part):
            if part.kind not in self._encoders:
                raise InvalidRequest("this server takes text only")
            async with self._room.admit(tenant, priority):
                return await self._open(part, recall, tenant)

    async def _open(self, part: MediaPart, recall: bool, tenant: str | None) -> MediaInput:
        files = await fetch_all(part.sources, self._policy, tenant)
        key = await asyncio.to_thread(content_key, part, files, self._format.rules)
        known = self._encoders[part.kind].get_cached(key) if recall else None
        if known is not None:
            return self._recalled(part, key, known)
        decoded, array = await self._media_decoder.decode(
            part.kind, files, self._budget(part), tenant=tenant
        )
        return self._decoded(part, key, decoded, array)

    async def encode(self, medium: MediaInput) -> Embedding:
        """The feature rows of a medium. Raises `InvalidRequest`, naming the part's field."""
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
        name = "audio_encoder" if medium.grid is None else "image_encoder"
        with with_error_field(medium.part), stage(name):
            return await encoder.encode(medium.key, request, medium.grid, medium.seconds)

    def _budget(self, part: MediaPart) -> PixelBudget | None:
        """Return the sizes of an image that is to be smaller than the rules allow."""
        rules, largest = self._format.rules.image, part.max_pixels
        return (
            None
            if largest is None
            else PixelBudget(rules.factor, min(rules.least, largest), largest)
        )

    def _decoded(
        self, part: MediaPart, key: bytes, decoded: Decoded, array: SharedArray
    ) -> MediaInput:
        shape, content = decoded.layout.shape, (decoded, array)
        if part.kind == "audio":
            return MediaInput(part, key, self._format.audio_tokens(shape[0]), content=content)
        grid = self._format.patch_grid(shape)
        tokens = self._format.image_tokens(grid)
        return MediaInput(part, key, tokens, grid, decoded.seconds, content)

    def _recalled(self, part: MediaPart, key: bytes, known: Embedding) -> MediaInput:
        grid = known.grid
        tokens = self._format.image_tokens(grid) if grid else known.layout.shape[0]
        return MediaInput(part, key, tokens, grid, known.seconds, embedding=known)


def content_key(part: MediaPart, files: Sequence[bytes], rules: MediaRules) -> bytes:
    """A key that is the same only for the same files decoded in the same way."""
    digest = hashlib.blake2b(
        repr((part.kind, part.max_pixels, rules)).encode(), digest_size=KEY_BYTES
    )
    for file in files:
        digest.update(len(file).to_bytes(8, "little"))
        digest.update(file)
    return digest.digest()


@contextmanager
def with_error_field(part: MediaPart) -> Iterator[None]:
    """Let an error name the field that holds the medium. A new one: an encoding may be shared."""
    try:
        yield
    except InvalidRequest as error:
        blamed = type(error)(f"{part.field}: {error.message}", param=part.field)
        blamed.reason = MEDIA_REFUSED
        raise blamed from error
