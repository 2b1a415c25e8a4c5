"""The stages of a request for images.

    preprocess -> image encoder -> thinker (states at query tokens) -> image (denoising, VAE)

One prefill of the thinker serves all images of a request, or two if there is a negative prompt.
Cancelling or closing a generator here closes the engine streams below it, and so aborts the work
inside the engines.
"""

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, replace

from sglang_omni.engines.encoder.cache import Embedding
from sglang_omni.engines.image.contract import DrawnImage, DrawProgress, DrawRequest
from sglang_omni.engines.media_decoder.memory import MediaMemory
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.engines.served_by import record_replica
from sglang_omni.engines.thinker.contract import Features, QueryTokens, ThinkerRequest
from sglang_omni.models.chat import ChatFormat
from sglang_omni.models.image import ImageFormat, ImagePlan, ImagePrompt
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.async_streams import gather_or_cancel, merge
from sglang_omni.pipeline.image_request import (
    NEGATIVE_PROMPT,
    PROMPT,
    CompletedImage,
    ImageEvent,
    ImageRequest,
    ImagesFinished,
    ImageStep,
    ImageUsage,
    PartialImage,
)
from sglang_omni.pipeline.image_turns import ImageTurns
from sglang_omni.pipeline.media_preprocessor import MediaInput, MediaPreprocessor
from sglang_omni.pipeline.preprocess import (
    aggregate,
    build_turns,
    check_prompt_length,
    check_text,
    estimate_text_work,
)
from sglang_omni.pipeline.request import ChatRequest
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.errors import EngineFailed

AdmitThinker = Callable[[ChatRequest], AbstractAsyncContextManager[Engine]]
AdmitImage = Callable[[ImageRequest], AbstractAsyncContextManager[Engine]]


@dataclass(frozen=True)
class QueryRows:
    """The embeddings of the query tokens, in shared memory."""

    memory: SharedArray
    layout: Layout


@dataclass(frozen=True)
class Original:
    """A decoded image in its own size: uint8 [height, width, 3] in `layout`."""

    pixels: SharedArray
    layout: Layout


@dataclass(frozen=True)
class ThinkerStates:
    """The thinker's states at the query tokens of a prompt, in shared memory."""

    memory: SharedArray
    layout: Layout


@dataclass(frozen=True)
class DrawingInput:
    """What all images of a request have in common.

    `negative` are the states of the prompt that guidance leads away from, if there is one.
    """

    prompt: ImagePrompt
    plan: ImagePlan
    usage: ImageUsage
    original: Original | None
    states: ThinkerStates
    negative: ThinkerStates | None


class ImagePipeline:
    """Answer requests for images. Holds no state between requests."""

    def __init__(
        self,
        media_preprocessor: MediaPreprocessor,
        admit_thinker: AdmitThinker,
        admit_image: AdmitImage,
        chat: ChatFormat,
        image_format: ImageFormat,
        query_rows: QueryRows,
        context_length: int,
        media_memory: MediaMemory,
    ) -> None:
        """Take the parts of a pipeline.

        Args:
            media_preprocessor: Loads and encodes the images of the messages.
            admit_thinker: Waits for capacity, and gives the thinker of one request.
            admit_image: Waits for capacity, and gives the image engine of one image.
            chat: The model's prompt format.
            image_format: How the model is asked for images.
            query_rows: The embeddings of the query tokens.
            context_length: The thinker's context, in tokens.
            media_memory: Counts features that wait for the thinker.
        """
        self._media_preprocessor, self._media_memory = media_preprocessor, media_memory
        self._admit_thinker, self._admit_image = admit_thinker, admit_image
        self._chat, self._format, self._query_rows = chat, image_format, query_rows
        self._context_length = context_length

    async def draw(self, request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        """Draw the images of a request, all at once as far as the engine has room."""
        drawing = await self._prepare(request)
        turns = ImageTurns(lambda: self._admit_image(request))
        indexes = range(len(request.seeds))
        images = [self._draw_one(request, drawing, index, turns) for index in indexes]
        async with aclosing(merge(*images)) as events:
            async for event in events:
                yield event
        tokens = drawing.plan.tokens * len(request.seeds)
        yield ImagesFinished(replace(drawing.usage, output_tokens=tokens))

    async def _prepare(self, request: ImageRequest) -> DrawingInput:
        """Run the stages up to the thinker's states. Raises `InvalidRequest`."""
        with stage("preprocess"):
            files = await gather_or_cancel(
                self._media_preprocessor.fetch(part, request.tenant) for part in request.media
            )
            fetched = tuple(
                replace(part, sources=(file,))
                for part, file in zip(request.media, files, strict=True)
            )
            original = await self._decode_original(request, files)
            chats = request.to_chats(fetched)
            media = await gather_or_cancel(
                self._media_preprocessor.open(
                    part, tenant=request.tenant, priority=request.priority
                )
                for part in fetched
            )
            size = None if original is None else original.layout.shape
            plan = self._format.plan(
                request.size,
                request.aspect,
                request.resolution,
                None if size is None else (size[0], size[1]),
            )
            prompts = {
                field: await run_off_loop(
                    estimate_text_work(chat), self._build_prompt, chat, media, field
                )
                for field, chat in chats.items()
            }
        embeddings = await gather_or_cancel(map(self._media_preprocessor.encode, media))
        states = await self._compute_states(chats[PROMPT], prompts, media, embeddings)
        usage = count_input(tuple(prompts.values()), media)
        negative = states.get(NEGATIVE_PROMPT)
        return DrawingInput(prompts[PROMPT], plan, usage, original, states[PROMPT], negative)

    async def _decode_original(self, request: ImageRequest, files: list[bytes]) -> Original | None:
        """Return the image to change as it is: the encoder's pixels have another size."""
        if request.source is None:
            return None
        part, file = request.media[request.source], files[request.source]
        decoded, pixels = await self._media_preprocessor.decode_original(part, file, request.tenant)
        # Without the axis of time, which an image has one step of.
        return Original(pixels, Layout(decoded.layout.shape[1:], decoded.layout.dtype))

    def _build_prompt(self, chat: ChatRequest, media: list[MediaInput], field: str) -> ImagePrompt:
        check_text(chat, self._context_length)
        prompt = self._format.build_prompt(build_turns(chat, media))
        check_prompt_length(prompt.prompt, self._context_length, field)
        return prompt

    async def _compute_states(
        self,
        chat: ChatRequest,
        prompts: Mapping[str, ImagePrompt],
        media: list[MediaInput],
        embeddings: list[Embedding],
    ) -> dict[str, ThinkerStates]:
        """Return the thinker's states at the query tokens of each prompt.

        The prompts run one after the other, so that a request never takes two of the thinker's
        places.
        """
        states = {}
        feature_bytes = sum(embedding.layout.nbytes for embedding in embeddings)
        with self._media_memory.hold(chat.tenant, feature_bytes):
            async with self._admit_thinker(chat) as thinker:
                for field, prompt in prompts.items():
                    request = aggregate(
                        chat, prompt.prompt, media, embeddings, self._chat, self._context_length
                    )
                    memory = SharedArray()
                    request = replace(request, query=self._build_query(prompt, memory))
                    layout = await _run_thinker(thinker, request)
                    states[field] = ThinkerStates(memory, layout)
        return states

    def _build_query(self, prompt: ImagePrompt, states: SharedArray) -> QueryTokens:
        rows = self._query_rows
        embeddings = Features(
            "image",
            rows.memory,
            rows.layout,
            (prompt.query_run,),
            # New for each request: query tokens from the radix cache would have no states.
            secrets.randbits(64),
            (prompt.query_grid,),
        )
        return QueryTokens(embeddings, states)

    async def _draw_one(
        self, request: ImageRequest, drawing: DrawingInput, index: int, turns: ImageTurns
    ) -> AsyncGenerator[ImageEvent, None]:
        """Draw the image `index` once the engine has room for it."""
        order = build_draw_request(request, drawing, request.seeds[index])
        async with turns.admit() as engine:
            with stage("image") as span:
                async with aclosing(engine.submit(order)) as outputs:
                    record_replica(span, engine)
                    async for output in outputs:
                        span.record_output()
                        for event in to_events(output, order, drawing, index):
                            yield event


async def _run_thinker(thinker: Engine, request: ThinkerRequest) -> Layout:
    """Return the layout of the states. Raises `EngineFailed` if there are none."""
    layout: Layout | None = None
    with stage("thinker") as span:
        async with aclosing(thinker.submit(request)) as outputs:
            record_replica(span, thinker)
            async for output in outputs:
                span.record_output()
                layout = layout or output.query_states
    if layout is None:
        raise EngineFailed("the thinker returned no states at the query tokens")
    return layout


def count_input(prompts: Sequence[ImagePrompt], media: list[MediaInput]) -> ImageUsage:
    """Return the tokens of prompts without their query blocks.

    The text of each counts; the images to edit, which are in each, count once.
    """
    image_tokens = sum(medium.rows for medium in media)
    text_tokens = 0
    for prompt in prompts:
        first, last = prompt.query_run
        block = last + 1 - first + 2
        text_tokens += len(prompt.prompt.ids) - block - image_tokens
    return ImageUsage(text_tokens, image_tokens)


def build_draw_request(request: ImageRequest, drawing: DrawingInput, seed: int) -> DrawRequest:
    """Return the order of one image."""
    original = drawing.original
    return DrawRequest(
        states=drawing.states.memory,
        states_layout=drawing.states.layout,
        prompt=drawing.prompt.text,
        pixels=SharedArray(),
        seed=seed,
        size=request.size,
        aspect=request.aspect,
        resolution=request.resolution,
        steps=request.steps,
        guidance=request.cfg,
        negative_states=None if drawing.negative is None else drawing.negative.memory,
        negative_layout=None if drawing.negative is None else drawing.negative.layout,
        reference=None if original is None else original.pixels,
        reference_layout=None if original is None else original.layout,
        previews=tuple(SharedArray() for _ in range(request.previews)),
    )


def to_events(
    output: DrawProgress | DrawnImage, order: DrawRequest, drawing: DrawingInput, index: int
) -> list[ImageEvent]:
    """Return the events of an output of the image engine."""
    if isinstance(output, DrawnImage):
        usage = replace(drawing.usage, output_tokens=drawing.plan.tokens)
        return [CompletedImage(index, order.pixels.read(output.layout), order.seed, usage)]
    events: list[ImageEvent] = [ImageStep(index, output.step, output.num_steps)]
    if output.preview is not None:
        number, layout = output.preview
        events.append(PartialImage(index, number, order.previews[number].read(layout)))
    return events
