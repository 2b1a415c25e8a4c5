"""Whole chats with media, from files to greedy tokens, through the running engines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sglang_omni.engines.encoder.cache import EmbeddingCache
from sglang_omni.engines.encoder.client import EncoderClient
from sglang_omni.engines.media_decoder.contract import Decoded
from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.thinker.contract import ThinkerOutput, ThinkerRequest
from sglang_omni.media.decode import Content, decode_medium
from sglang_omni.media.fetch import FetchPolicy
from sglang_omni.media.image import read_rgb
from sglang_omni.media.limits import NO_VIDEO_OPTIONS, Kind, MediaLimits, PixelBudget, VideoOptions
from sglang_omni.media.sizes import pair_seconds
from sglang_omni.models.ming.media_rules import FORMAT, RULES
from sglang_omni.models.ming.prompt.format import MingChatFormat
from sglang_omni.pipeline.async_streams import gather_or_cancel
from sglang_omni.pipeline.media_preprocessor import MediaPreprocessor
from sglang_omni.pipeline.preprocess import aggregate, preprocess
from sglang_omni.pipeline.request import ChatRequest, MediaPart, Message, TextPart
from sglang_omni.protocol.sampling import SamplingParams
from tests.models.ming.prompt.test_chat import ROLES
from tests.testing.golden import TINY, Case, cases, file_of, load_case

CHATS = cases("e2e", "chat_")
CONTEXT = 2048
CHAT = MingChatFormat(TINY)
LIMITS = MediaLimits()
IMAGES = ("vision/files/image_2.png", "vision/files/image_3.png")

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Files:
    """Decodes as the media decoders do, but in this process.

    A video's frames keep the size they have, for so the stored chats were made.
    """

    async def decode(
        self,
        kind: Kind,
        files: Sequence[bytes],
        image: PixelBudget | None,
        *,
        tenant: str | None = None,
        video: VideoOptions = NO_VIDEO_OPTIONS,
    ) -> tuple[Decoded, SharedArray]:
        shared = SharedArray()
        if kind == "video":
            array, seconds = frames_of(files)
        else:
            array, seconds = decode_medium(kind, files, LIMITS, RULES, image)
        return Decoded(shared.write(array), seconds), shared


def frames_of(files: Sequence[bytes]) -> Content:
    frames = [np.asarray(read_rgb(file, LIMITS)) for file in files]
    return np.stack(frames), pair_seconds(len(frames), fps=2.0)


def perception(encoder: EngineProcess) -> MediaPreprocessor:
    client = EncoderClient(encoder, EmbeddingCache(1 << 20))
    anywhere = FetchPolicy(allowed_local_path=Path("/"))
    encoders: dict[Kind, EncoderClient] = {"image": client, "video": client, "audio": client}
    return MediaPreprocessor(anywhere, FORMAT, Files(), encoders)


def path_of(name: str) -> str:
    return str(file_of(name).resolve())


def picture(name: str) -> MediaPart:
    return MediaPart("image", (path_of(name),), name)


def messages_of(case: Case) -> tuple[Message, ...]:
    entries = load_case("prompt_format/chat").info["cases"]
    entry = next(e for e in entries if e["name"] == case.info["prompt_format_case"])
    frames = tuple(map(path_of, case.info["frame_files"]))

    def part(raw: dict[str, Any]) -> TextPart | MediaPart:
        match raw["type"]:
            case "text":
                return TextPart(raw["text"])
            case "video":
                return MediaPart("video", frames, "video")
            case kind:
                return MediaPart(kind, (path_of(raw[kind]),), kind)

    turns = [Message(ROLES[m["role"]], tuple(map(part, m["content"]))) for m in entry["messages"]]
    system = entry["system_replacement"]
    return (*([] if system is None else [Message("system", (TextPart(system),))]), *turns)


async def ask(
    messages: Sequence[Message], encoder: EngineProcess, tokens: int, tenant: str | None = None
) -> ThinkerRequest:
    """What the thinker is asked for a chat: greedy, for `tokens` tokens."""
    chat = ChatRequest("chat", tuple(messages), SamplingParams(max_tokens=tokens), tenant=tenant)
    senses = perception(encoder)
    media = await gather_or_cancel(map(senses.open, chat.media))
    prompt = preprocess(chat, media, CHAT, CONTEXT)
    rows = await gather_or_cancel(map(senses.encode, media))
    return aggregate(chat, prompt, media, rows, CHAT, CONTEXT)


async def answer(
    thinker: EngineProcess, request: ThinkerRequest
) -> tuple[list[int], ThinkerOutput]:
    outputs = [output async for output in thinker.submit(request)]
    return [token for output in outputs for token in output.token_ids], outputs[-1]


@pytest.mark.parametrize("name", CHATS)
async def test_a_chat_gives_the_released_models_ids_and_tokens(
    name: str, one_rank: EngineProcess, encoder: EngineProcess
) -> None:
    case = load_case(name)
    request = await ask(messages_of(case), encoder, len(case["generated_ids"]))
    assert list(request.input_ids) == case["input_ids"].tolist()
    for reused in (False, True):
        tokens, last = await answer(one_rank, request)
        assert tokens == case["generated_ids"].tolist()
        assert not reused or last.cached_tokens == len(request.input_ids) - 1


@pytest.mark.extended
@pytest.mark.parametrize("name", CHATS)
async def test_two_ranks_of_both_engines_give_the_same_tokens(
    name: str, two_ranks: EngineProcess, two_encoder_ranks: EngineProcess
) -> None:
    case = load_case(name)
    request = await ask(messages_of(case), two_encoder_ranks, len(case["generated_ids"]))
    tokens, last = await answer(two_ranks, request)
    assert tokens == case["generated_ids"].tolist()
    assert last.cached_tokens == 0


async def test_prompts_that_differ_in_a_picture_share_no_kv_for_it(
    one_rank: EngineProcess, encoder: EngineProcess
) -> None:
    # Words that no other test shows a picture after.
    question = TextPart("Which is larger? ")
    first, second = map(picture, IMAGES)
    low = MediaPart("image", first.sources, "low", max_pixels=2048)
    for shown in (first, second, low):
        request = await ask([Message("user", (question, shown))], encoder, 4)
        start, _ = request.features[0].offsets[0]
        _, last = await answer(one_rank, request)
        # What comes before the picture is shared, the picture is not.
        assert last.cached_tokens <= start
        assert shown is first or last.cached_tokens == start


async def test_prompts_of_two_tenants_share_no_kv(
    one_rank: EngineProcess, encoder: EngineProcess
) -> None:
    messages = [Message("user", (picture(IMAGES[0]), TextPart("What is it, tenant?")))]
    cached = []
    for tenant in ("one", "two", "one"):
        request = await ask(messages, encoder, 4, tenant)
        cached.append((await answer(one_rank, request))[1].cached_tokens)
    assert cached[:2] == [0, 0]
    assert cached[2] == len(request.input_ids) - 1
