"""From media parts to features in their places: keys, caches, order, and who is blamed."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sglang_omni.engines.encoder.cache import Embedding, EmbeddingCache
from sglang_omni.engines.encoder.client import EncoderClient
from sglang_omni.engines.encoder.contract import AudioEncodeRequest, Encoded, VisionEncodeRequest
from sglang_omni.engines.media_decoder.contract import Decoded
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.thinker.contract import ThinkerRequest
from sglang_omni.media.fetch import FetchPolicy
from sglang_omni.media.limits import NO_VIDEO_OPTIONS, Kind, PixelBudget, VideoOptions, VideoSound
from sglang_omni.pipeline.media_preprocessor import (
    MAX_OPEN_MEDIA_PER_TENANT,
    MediaInput,
    MediaPreprocessor,
    hash_content,
    list_inputs,
)
from sglang_omni.pipeline.preprocess import aggregate, preprocess
from sglang_omni.pipeline.request import ChatRequest, MediaPart, Message, TextPart
from sglang_omni.protocol.errors import InvalidRequest, OmniError
from sglang_omni.protocol.sampling import SamplingParams
from tests.pipeline.engines import ScriptedEngine
from tests.testing.family import CHAT, MEDIA_FORMAT, Tokens

HIDDEN = 8
RULES = MEDIA_FORMAT.rules
IMAGE_UNIT, VIDEO_UNIT = RULES.image.factor, RULES.video.factor
# An image, two pairs of frames, and a second of sound.
SHAPES = {
    "image": (1, 2 * IMAGE_UNIT, 3 * IMAGE_UNIT, 3),
    "video": (4, 2 * VIDEO_UNIT, 2 * VIDEO_UNIT, 3),
    "audio": (RULES.sample_rate,),
}
SECONDS = {"video": (0.25, 1.25)}


def count_rows(shape: tuple[int, ...]) -> int:
    """Return how many tokens the format has for a decoded medium of that shape."""
    if len(shape) == 1:
        return MEDIA_FORMAT.audio_tokens(shape[0])
    grid = MEDIA_FORMAT.patch_grid(shape)
    return grid[0] * MEDIA_FORMAT.image_tokens(grid)


ROWS = {kind: count_rows(shape) for kind, shape in SHAPES.items()}


class FakeMediaDecoder:
    """Decodes a file to the shape of its kind, or raises what the file says."""

    def __init__(self) -> None:
        self.decoded: list[tuple[Kind, tuple[bytes, ...], PixelBudget | None]] = []
        self.options: list[VideoOptions] = []

    async def decode(
        self,
        kind: Kind,
        files: Sequence[bytes],
        image: PixelBudget | None,
        *,
        tenant: str | None = None,
        video: VideoOptions = NO_VIDEO_OPTIONS,
    ) -> tuple[Decoded, SharedArray]:
        self.decoded.append((kind, tuple(files), image))
        self.options.append(video)
        is_sound = kind == "audio" and video.sound != "off"
        if files[0] == b"broken" or (is_sound and files[0] == b"broken sound"):
            raise InvalidRequest("cannot be decoded")
        array = SharedArray()
        kind_of = np.float32 if kind == "audio" else np.uint8
        shape = (0,) if is_sound and files[0] == b"silent" else SHAPES[kind]
        layout = array.write(np.zeros(shape, kind_of))
        return Decoded(layout, SECONDS.get(kind, ())), array


async def encode(
    request: VisionEncodeRequest | AudioEncodeRequest,
) -> AsyncGenerator[Encoded, None]:
    """An encoder's script: as many rows as the medium has tokens."""
    assert isinstance(request, AudioEncodeRequest) == (len(request.layout.shape) == 1)
    rows = count_rows(request.layout.shape)
    yield Encoded(request.rows.write(np.ones((rows, HIDDEN), np.float32)))


def part(
    kind: Kind,
    *files: bytes,
    field: str = "messages.0.content.0",
    max_pixels: int | None = None,
    video: VideoOptions = NO_VIDEO_OPTIONS,
) -> MediaPart:
    sources = tuple(f"data:;base64,{base64.b64encode(file).decode()}" for file in files)
    return MediaPart(kind, sources, field, max_pixels, video)


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine(encode)


@pytest.fixture
def media_decoder() -> FakeMediaDecoder:
    return FakeMediaDecoder()


@pytest.fixture
def perception(engine: ScriptedEngine, media_decoder: FakeMediaDecoder) -> MediaPreprocessor:
    images, audio = (EncoderClient(engine, EmbeddingCache(1 << 20)) for _ in range(2))
    encoders: dict[Kind, EncoderClient] = {"image": images, "video": images, "audio": audio}
    return MediaPreprocessor(FetchPolicy(), MEDIA_FORMAT, media_decoder, encoders)


async def perceive(
    perception: MediaPreprocessor, medium: MediaPart
) -> tuple[MediaInput, Embedding]:
    opened = await perception.open(medium)
    return opened, await perception.encode(opened)


@pytest.mark.parametrize(("kind", "rows"), ROWS.items())
async def test_each_kind_has_the_rows_its_prompt_has_places_for(
    perception: MediaPreprocessor, kind: Kind, rows: int
) -> None:
    medium, embedding = await perceive(perception, part(kind, b"file"))
    assert embedding.layout.shape == (rows, HIDDEN)
    assert medium.tokens * max(len(medium.seconds), 1) == rows


async def test_a_medium_seen_before_is_neither_decoded_nor_encoded_again(
    perception: MediaPreprocessor, media_decoder: FakeMediaDecoder, engine: ScriptedEngine
) -> None:
    first, rows = await perceive(perception, part("video", b"file"))
    second, again = await perceive(perception, part("video", b"file", field="elsewhere"))
    assert again is rows
    assert len(media_decoder.decoded) == len(engine.requests) == 1
    assert (second.grid, second.seconds, second.tokens) == (
        first.grid,
        first.seconds,
        first.tokens,
    )


def test_keys_tell_apart_content_kind_frames_and_every_decode_option() -> None:
    faster = replace(RULES, video=replace(RULES.video, fps=4.0))
    keys = [
        hash_content(part("image"), [b"ab"], RULES),
        hash_content(part("image"), [b"ac"], RULES),
        hash_content(part("video"), [b"ab"], RULES),
        hash_content(part("video"), [b"a", b"b"], RULES),
        hash_content(part("video"), [b"", b"ab"], RULES),
        hash_content(part("image", max_pixels=262_144), [b"ab"], RULES),
        hash_content(part("image"), [b"ab"], faster),
        hash_content(part("video", video=VideoOptions(fps=1.0)), [b"ab"], RULES),
        hash_content(part("video", video=VideoOptions(max_frames=1)), [b"ab"], RULES),
        hash_content(part("audio"), [b"ab"], RULES),
        hash_content(part("audio", video=VideoOptions(sound="optional")), [b"ab"], RULES),
    ]
    assert len(set(keys)) == len(keys)
    assert keys[0] == hash_content(part("image", field="other"), [b"ab"], RULES)


async def test_an_error_names_the_field_of_the_medium(perception: MediaPreprocessor) -> None:
    with pytest.raises(InvalidRequest) as error:
        await perception.open(part("image", b"broken", field="images.3"))
    assert error.value.param == "images.3"
    assert error.value.message.startswith("images.3: cannot be decoded")


async def test_equal_media_that_fail_together_blame_each_its_own_field(
    perception: MediaPreprocessor, engine: ScriptedEngine
) -> None:
    async def fail(request: object) -> AsyncGenerator[Encoded, None]:
        await asyncio.sleep(0.01)
        raise InvalidRequest("too long")
        yield

    engine.script = fail
    fields = ("audios.0", "audios.1")
    opened = [await perception.open(part("audio", b"x", field=field)) for field in fields]
    errors = await asyncio.gather(*map(perception.encode, opened), return_exceptions=True)
    assert [getattr(error, "param", None) for error in errors] == list(fields)
    assert len(engine.requests) == 1


async def test_a_server_without_encoders_refuses_media(media_decoder: FakeMediaDecoder) -> None:
    blind = MediaPreprocessor(FetchPolicy(), MEDIA_FORMAT, media_decoder, {})
    with pytest.raises(InvalidRequest, match="text only"):
        await blind.open(part("image", b"file"))
    assert media_decoder.decoded == []


async def test_only_so_many_media_are_in_memory_at_once(
    perception: MediaPreprocessor, media_decoder: FakeMediaDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    most, now = 0, 0
    decode = media_decoder.decode

    async def counted(
        kind: Kind, files: Sequence[bytes], image: PixelBudget | None, **options: Any
    ) -> tuple[Decoded, SharedArray]:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1
        return await decode(kind, files, image)

    monkeypatch.setattr(media_decoder, "decode", counted)
    await asyncio.gather(*(perception.open(part("image", b"%d" % i)) for i in range(40)))
    assert most == MAX_OPEN_MEDIA_PER_TENANT


async def test_the_frames_of_a_video_share_the_limit_of_one_file(
    perception: MediaPreprocessor, media_decoder: FakeMediaDecoder
) -> None:
    perception._policy = FetchPolicy(file_bytes=10)
    await perception.open(part("video", b"12345", b"12345"))
    with pytest.raises(InvalidRequest, match="more than 4 bytes"):
        await perception.open(part("video", b"123456", b"12345"))


MESSAGES = (
    Message("user", (part("image", b"one"), TextPart("What is this?"))),
    Message("assistant", (TextPart("A mill."),)),
    Message("user", (TextPart("And these? "), part("video", b"two"), part("audio", b"three"))),
)


async def asked(
    perception: MediaPreprocessor, messages: tuple[Message, ...] = MESSAGES, **request: Any
) -> ThinkerRequest:
    chat = ChatRequest("chat", messages, SamplingParams(), **request)
    media = [await perception.open(medium) for medium in chat.media]
    prompt = preprocess(chat, media, CHAT, 512)
    media = list_inputs(media)
    rows = [await perception.encode(medium) for medium in media]
    return aggregate(chat, prompt, media, rows, CHAT, 512)


async def test_features_lie_where_their_placeholders_are(
    perception: MediaPreprocessor, tokenizer: Tokens
) -> None:
    request = await asked(perception, tenant="me")
    assert request.tenant == "me"
    placeholders, all_places = set(), []
    for features in request.features:
        places = [i for first, last in features.offsets for i in range(first, last + 1)]
        assert len(places) == features.layout.shape[0] == ROWS[features.modality]
        (token,) = {request.input_ids[i] for i in places}
        assert token in tokenizer.special
        placeholders.add(token)
        all_places += places
    # Runs come in the order of the prompt, and there are no other placeholders.
    ids = enumerate(request.input_ids)
    assert all_places == [i for i, token in ids if token in placeholders]
    assert [features.modality for features in request.features] == ["image", "video", "audio"]
    grids = {kind: MEDIA_FORMAT.patch_grid(SHAPES[kind]) for kind in ("image", "video")}
    assert [features.grid for features in request.features] == [
        ((1, *grids["image"][1:]),),
        ((1, *grids["video"][1:]),) * len(SECONDS["video"]),
        (),
    ]


def film(file: bytes, sound: VideoSound = "optional", **options: Any) -> MediaPart:
    return part("video", file, video=VideoOptions(sound=sound, **options))


@pytest.mark.parametrize("sound", ["optional", "required"])
async def test_the_sound_of_a_video_is_a_clip_right_after_it(
    perception: MediaPreprocessor, media_decoder: FakeMediaDecoder, sound: VideoSound
) -> None:
    content = (TextPart("What is said? "), film(b"film", sound), TextPart(" In a word."))
    request = await asked(perception, (Message("user", content),))
    clip = (*content[:2], part("audio", b"film"), content[2])
    other = await asked(
        perception, (Message("user", (clip[0], part("video", b"film"), *clip[2:])),)
    )
    assert request.input_ids == other.input_ids
    assert [features.modality for features in request.features] == ["video", "audio"]
    assert [features.offsets for features in request.features] == [
        features.offsets for features in other.features
    ]
    assert [kind for kind, *_ in media_decoder.decoded] == ["video", "audio", "audio"]


@pytest.mark.parametrize(
    ("file", "sound"),
    [(b"silent", "optional"), (b"silent", "required"), (b"broken sound", "optional")],
)
async def test_a_video_whose_sound_cannot_be_heard_is_seen(
    perception: MediaPreprocessor, file: bytes, sound: VideoSound
) -> None:
    request = await asked(perception, (Message("user", (film(file, sound),)),))
    plain = await asked(perception, (Message("user", (part("video", file),)),))
    assert (request.input_ids, len(request.features)) == (plain.input_ids, 1)


async def test_a_required_sound_that_is_broken_is_refused_by_the_field(
    perception: MediaPreprocessor,
) -> None:
    with pytest.raises(InvalidRequest, match="cannot be decoded") as error:
        await perception.open(film(b"broken sound", "required"))
    assert error.value.param == "messages.0.content.0"


async def test_a_video_and_its_sound_are_cached_each_by_what_it_depends_on(
    perception: MediaPreprocessor, media_decoder: FakeMediaDecoder
) -> None:
    for medium in (
        film(b"film"),
        film(b"film", "required"),
        film(b"film", "off"),
        film(b"film", fps=1.0),
    ):
        for opened in list_inputs([await perception.open(medium)]):
            await perception.encode(opened)
    kinds = [kind for kind, *_ in media_decoder.decoded]
    assert kinds == ["video", "audio", "video"]
    assert media_decoder.options[-1].fps == 1.0


async def test_a_sound_that_fills_the_context_is_named(perception: MediaPreprocessor) -> None:
    chat = ChatRequest("chat", (Message("user", (film(b"film"),)),), SamplingParams())
    media = [await perception.open(medium) for medium in chat.media]
    with pytest.raises(InvalidRequest, match="use_audio_in_video"):
        preprocess(chat, media, CHAT, len(preprocess(chat, media, CHAT, 512).ids))


async def test_each_medium_has_a_hash_of_its_own(perception: MediaPreprocessor) -> None:
    request = await asked(perception)
    assert len({features.content_hash for features in request.features}) == 3


@pytest.mark.parametrize("rows", [ROWS["image"] - 1, ROWS["image"] + 1])
async def test_too_many_or_too_few_rows_are_an_internal_error_that_names_both(
    perception: MediaPreprocessor, engine: ScriptedEngine, rows: int
) -> None:
    async def wrong(request: Any) -> AsyncGenerator[Encoded, None]:
        yield Encoded(request.rows.write(np.ones((rows, HIDDEN), np.float32)))

    engine.script = wrong
    message = f"{rows} feature rows for {ROWS['image']} placeholders"
    with pytest.raises(OmniError, match=message) as error:
        await asked(perception, MESSAGES[:1])
    assert error.value.status == 500


async def test_a_prompt_that_fills_the_context_is_refused_before_anything_is_encoded(
    perception: MediaPreprocessor, engine: ScriptedEngine
) -> None:
    chat = ChatRequest("chat", MESSAGES[:1], SamplingParams())
    media = [await perception.open(medium) for medium in chat.media]
    length = len(preprocess(chat, media, CHAT, 512).ids)
    with pytest.raises(InvalidRequest, match=f"the context has {length}"):
        preprocess(chat, media, CHAT, length)
    assert engine.requests == []


async def test_a_recalled_embedding_stands_for_its_medium() -> None:
    array = SharedArray()
    embedding = Embedding(array, array.write(np.ones((25, HIDDEN), np.float32)))
    medium = MediaInput(part("audio"), b"key", 25, embedding=embedding)
    perception = MediaPreprocessor(FetchPolicy(), MEDIA_FORMAT, FakeMediaDecoder(), {})
    assert await perception.encode(medium) is embedding


async def test_slow_media_of_one_tenant_do_not_keep_anothers_waiting(
    perception: MediaPreprocessor, media_decoder: FakeMediaDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode, ending = media_decoder.decode, asyncio.Event()

    async def slow(
        kind: Kind,
        files: Sequence[bytes],
        image: PixelBudget | None,
        *,
        tenant: str | None = None,
        video: VideoOptions,
    ) -> tuple[Decoded, SharedArray]:
        if tenant == "crowd":
            await ending.wait()
        return await decode(kind, files, image)

    monkeypatch.setattr(media_decoder, "decode", slow)
    media = [part("image", b"%d" % number) for number in range(64)]
    crowd = [asyncio.create_task(perception.open(one, tenant="crowd")) for one in media]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(1):
        assert (await perception.open(part("image", b"mine"), tenant="other")).tokens
    ending.set()
    await asyncio.gather(*crowd)
