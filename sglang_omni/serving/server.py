"""Builds the server from its configuration, and starts and stops its engines."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from sglang_omni.admission.controller import AdmissionController
from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.image_options import ImageOptions
from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.config.tree import Config
from sglang_omni.engines.grammar_checker.checker import GrammarChecker
from sglang_omni.engines.grammar_checker.contract import GrammarSettings, build_check_request
from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.engines.speech.contract import TalkerInfo
from sglang_omni.engines.thinker.contract import ThinkerInfo
from sglang_omni.engines.thinker.sglang_metrics import SGLangMetrics
from sglang_omni.media.speech_spans import CutRules
from sglang_omni.models.image import Size
from sglang_omni.models.registry import family_of
from sglang_omni.pipeline.image_request import ImageEvent, ImageRequest
from sglang_omni.pipeline.preprocess import apply_answer_grammar, tokenize
from sglang_omni.pipeline.recording import RecordingEnd, RecordingPiece, cut_recording
from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest
from sglang_omni.pipeline.respond import Engines, Pipeline
from sglang_omni.protocol.compat.voice_names import map_openai_voices
from sglang_omni.protocol.errors import EngineUnavailable, Forbidden, RequestNotFound
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.queueing.queue import QueueRules
from sglang_omni.serving.autoscaling import Autoscalers, create_pool
from sglang_omni.serving.engine_config import build_output_rules
from sglang_omni.serving.engine_specs import BuildEngineSpecs, build_engine_specs
from sglang_omni.serving.engine_states import describe_process
from sglang_omni.serving.image_engine import create_image_engine
from sglang_omni.serving.media_engines import MediaEngines
from sglang_omni.serving.model_names import read_model_names
from sglang_omni.serving.reading import build_reading
from sglang_omni.serving.voice_registry import create_voice_registry
from sglang_omni.voices.aliases import parse_aliases, validate_aliases


class Server:
    """The engines of one checkpoint and the pipeline over them: the backend of the API."""

    def __init__(
        self, config: Config, checkpoint: Path, build_specs: BuildEngineSpecs = build_engine_specs
    ) -> None:
        """Read the tokenizer and the names of the voices without starting an engine.

        Raises:
            StartupError: The checkpoint or the configuration cannot be used, for example because
                the default voice or the voice of an alias does not exist.
        """
        self.config = config
        self.model_names = read_model_names(config)
        family = family_of(checkpoint)
        stated = family.capabilities(checkpoint)
        self._chat = family.chat_format(checkpoint)
        self._image = create_image_engine(config, checkpoint, family, self._chat)
        self.capabilities = replace(stated, image_output=self._image.engine is not None)
        self.speech_text = family.speech_text
        self.reading = build_reading(config.text)
        self._media = MediaEngines(config, checkpoint)
        self._sglang = SGLangMetrics()
        specs = build_specs(config, checkpoint, self._sglang.environment)
        self._engines = {name: create_pool(config, replicas) for name, replicas in specs.items()}
        if self._image.engine is not None:
            self._engines["image"] = self._image.engine.pool
        self.voice_aliases = parse_aliases(config.voice_alias)
        presets = family.voice_names(checkpoint)
        self._check_voices(presets)
        self.openai_voices = map_openai_voices(presets, strict=config.strict_names)
        self.voice_registry = create_voice_registry(
            config,
            checkpoint,
            self._media.decoders,
            self._engines["talker"],
            lambda: self.sample_rate,
            self._media.decode_queue,
        )
        self._grammars = GrammarChecker(GrammarSettings(checkpoint), build_output_rules(config))
        self._pools = {**self._engines, **self._media.pools}
        self.processes = dict(self._media.decoders.processes)
        for pool in self._pools.values():
            self.processes |= pool.processes
        self.processes["grammar"] = self._grammars.process
        rules = QueueRules(config.admission.queue_length, config.admission.queue_seconds)
        replicas = {name: pool.replicas for name, pool in self._engines.items()}
        self._admission = AdmissionController(replicas, rules, config.request_timeout)
        self._autoscalers = Autoscalers(config, self._pools.values(), self._admission.counters)
        # Set when the server shuts down, after its shutdown delay; see `Backend.draining`.
        self.draining = asyncio.Event()
        self._is_leaving = False

    async def start(self) -> None:
        """Start every engine. If one fails, stop the others and raise its `StartupError`."""
        starts = [asyncio.create_task(engine.start()) for engine in self._engines.values()]
        starts += [asyncio.create_task(one.start()) for one in (self._media, self._grammars)]
        # The text front end loads grammars; without this the first speech request would wait.
        starts.append(asyncio.create_task(asyncio.to_thread(self.speech_text.warm_up)))
        try:
            await asyncio.gather(*starts)
        except BaseException:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
            await self.stop()
            raise
        self._autoscalers.start()

    async def stop(self, deadline_s: float = 10.0) -> None:
        """Stop every engine; kill the processes that still run after `deadline_s`.

        Requests in flight fail at once, and their clients receive an error.
        """
        await self._autoscalers.stop()
        stops = (engine.stop(deadline_s) for engine in self._engines.values())
        await asyncio.gather(self._media.stop(deadline_s), self._grammars.stop(), *stops)
        self._sglang.close()

    def leave(self) -> None:
        """Stop being ready, because the server shuts down. Requests are still accepted."""
        self._is_leaving = True

    @property
    def model(self) -> str:
        """Return the main name of the served model."""
        return self.model_names.main

    @property
    def strict_fields(self) -> bool:
        """Return whether a request with fields that would be ignored is rejected."""
        return self.config.strict_fields

    @property
    def accepts_media(self) -> bool:
        """Return whether a chat may have images, videos and audio."""
        return not self.config.text_only

    @property
    def max_tokens(self) -> int:
        """Return the maximum number of tokens in an answer."""
        return self.config.max_tokens

    @property
    def deterministic_text(self) -> bool:
        """Return whether a seed makes sampled text reproducible."""
        return self.config.thinker.deterministic

    @property
    def default_system(self) -> str:
        """Return the system message of a chat that brings none."""
        return self._chat.default_system

    @property
    def frame_s(self) -> float:
        """Return the seconds of speech in one audio token."""
        return self._talker_info().frame_s

    @property
    def sample_rate(self) -> int:
        """Return the sample rate of the speech in Hz."""
        return self._talker_info().sample_rate

    @property
    def voices(self) -> tuple[str, ...]:
        """Return the names of the preset voices."""
        return self._talker_info().voices

    @property
    def has_speaker_encoder(self) -> bool:
        """Return whether a cloned voice has a speaker vector besides its recording."""
        return self._talker_info().has_speaker_encoder

    @property
    def default_voice(self) -> str:
        """Return the preset voice of requests that name none."""
        return self.config.voice or self.voices[0]

    @property
    def context_length(self) -> int:
        """Return the maximum number of tokens in a prompt and its answer together."""
        return self._thinker_info().context_length

    @property
    def max_body_bytes(self) -> int:
        """Return the maximum size of a request's body in bytes."""
        return self.config.max_body_bytes

    @property
    def realtime(self) -> RealtimeOptions:
        """Return the limits of Realtime sessions."""
        return self.config.realtime

    @property
    def image_options(self) -> ImageOptions:
        """Return what a request for images may ask for."""
        return self.config.image

    @property
    def ready(self) -> bool:
        """Return whether the server can serve requests and is not shutting down.

        At least one replica of every engine that always runs must be loaded and warmed up, and
        files must be decodable.
        """
        return (
            not self._is_leaving
            and all(pool.is_ready for pool in self._pools.values() if pool.min_replicas)
            and self._media.decoders.can_decode
        )

    @property
    def registries(self) -> tuple[CollectorRegistry, ...]:
        """Return the registry with SGLang's own metrics of the thinker."""
        return (self._sglang.registry,)

    @property
    def has_grammars(self) -> bool:
        """Return whether an answer can be constrained to a JSON schema."""
        return self._thinker_info().supports_json_schema

    @property
    def supports_grammar(self) -> bool:
        """Return whether an answer can be constrained to a grammar, as for function calls."""
        return self._thinker_info().supports_grammar

    @property
    def vocabulary_size(self) -> int:
        """Return one more than the highest id of a token."""
        return self._chat.vocabulary_size

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a prompt that is no chat; names of special tokens stand for them."""
        return self._chat.encode_prompt(text)

    def tokenize(self, request: ChatRequest) -> tuple[int, ...]:
        """Return the tokens of the prompt of a chat without media. Raises `InvalidRequest`."""
        return tokenize(request, (), self._chat).ids

    def decode_token(self, token_id: int) -> tuple[str, bytes]:
        """Return a token's name and its bytes in the text; a special token has no bytes."""
        return self._chat.token_name(token_id), self._chat.token_bytes(token_id)

    def engines(self) -> dict[str, dict[str, Any]]:
        """Return the state and the counters of each engine.

        They include the admission queue of the thinker and the talker, and the cache of encoders.
        """
        states = {name: describe_process(process) for name, process in self.processes.items()}
        for name, counters in {**self._media.counters(), **self._admission.counters()}.items():
            states[name]["counters"] = {**states[name]["counters"], **counters}
        return states

    def profile(self, engine: str, name: str | None) -> str:
        """Start to profile an engine into the folder `name`, or stop if `name` is None.

        Returns:
            The path of the folder, "" after a stop.

        Raises:
            RequestNotFound: There is no such engine.
            Forbidden: The server has no folder for profiles.
        """
        folder = self.config.profile_folder
        if folder is None:
            raise Forbidden("profiling is disabled; start the server with --profile-folder")
        if engine not in self.processes:
            names = ", ".join(self.processes)
            raise RequestNotFound(f"no engine {engine[:64]!r}; engines: {names}", param="engine")
        path = None if name is None else str(folder.resolve() / name)
        self.processes[engine].profile(path)
        return path or ""

    def require_images(self) -> None:
        """Raise `ImagesUnavailable` if the server draws no images."""
        self._image.require()

    def draw(self, request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        """Draw images once they are admitted. Raises `Overloaded`, `ImagesUnavailable`."""
        pipeline = self._image.require().create_pipeline(
            self._media, self._admission, self._admit, self._thinker_info().context_length
        )
        return self._admission.with_timeout(request, pipeline.draw(request))

    def fit_resolution(self, size: Size) -> int:
        """Return the resolution nearest to a requested size. Raises `ImagesUnavailable`."""
        return self._image.require().format.fit_resolution(size)

    def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Answer a chat request once it is admitted. Raises `Overloaded`."""
        self._require_started()
        events = self._pipeline().respond(request)
        sampling = apply_answer_grammar(request, self._chat)
        if self.supports_grammar and build_check_request(sampling) is not None:
            events = self._checked(sampling, request.tenant, events)
        return self._answer(request, events)

    def cut_recording(
        self, recording: SharedDescriptor | str, rules: CutRules, tenant: str | None, field: str
    ) -> AsyncGenerator[RecordingPiece | RecordingEnd, None]:
        """Yield the pieces of a recording in which somebody speaks, then its end."""
        self._require_started()
        media = self._media
        return cut_recording(media.decoders, media.preprocessor, recording, rules, tenant, field)

    async def _checked(
        self, sampling: SamplingParams, tenant: str | None, events: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[Event, None]:
        """Check the grammar of an answer before its request is admitted.

        An invalid grammar is thus rejected without taking capacity from other requests.
        """
        await self._grammars.check(sampling, tenant)
        async with aclosing(events):
            async for event in events:
                yield event

    def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        """Synthesise a text once it is admitted. Raises `Overloaded`."""
        self._require_started()
        return self._answer(request, self._pipeline().speak(request))

    def stream_speech(
        self, request: SpeechRequest, text: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Event, None]:
        """Synthesise a text while it is still being received. Raises `Overloaded`."""
        self._require_started()
        return self._answer(request, self._pipeline().stream_speech(request, text))

    def _answer(
        self, request: ChatRequest | SpeechRequest, events: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[Event, None]:
        """Return the events of an answer within its time limit; images give way to its first."""
        if self._image.engine is not None:
            events = self._image.engine.track(events, request.voice is not None)
        return self._admission.with_timeout(request, events)

    def _require_started(self) -> None:
        """Raise `EngineUnavailable` until the thinker and the talker were ready once."""
        self._thinker_info()
        self._talker_info()

    def _pipeline(self) -> Pipeline:
        return Pipeline(
            media_preprocessor=self._media.preprocessor,
            admit=self._admit,
            chat=self._chat,
            context_length=self._thinker_info().context_length,
            segment_settings=self.config.segment,
            resolve_voice=self.voice_registry.resolve,
            media_memory=self._media.decoders.memory,
            speech_text=self.speech_text,
            sample_rate=self.sample_rate,
            frame_s=self.frame_s,
            speech_languages=self.capabilities.speech_languages,
        )

    @asynccontextmanager
    async def _admit(self, request: ChatRequest | SpeechRequest) -> AsyncIterator[Engines]:
        """Admit a request, and pin it to one replica of each engine it needs during the body.

        Raises `Overloaded`.
        """
        thinker, talker = self._engines["thinker"], self._engines["talker"]
        async with self._admission.admit(request):
            with ExitStack() as stack:
                needs_thinker = isinstance(request, ChatRequest)
                needs_talker = request.voice is not None
                yield Engines(
                    thinker=stack.enter_context(thinker.pin_replica())
                    if needs_thinker
                    else thinker,
                    talker=stack.enter_context(talker.pin_replica()) if needs_talker else talker,
                )

    def _thinker_info(self) -> ThinkerInfo:
        info: ThinkerInfo | None = self._engines["thinker"].info
        if info is None:
            raise EngineUnavailable("the thinker is starting")
        return info

    def _talker_info(self) -> TalkerInfo:
        info: TalkerInfo | None = self._engines["talker"].info
        if info is None:
            raise EngineUnavailable("the talker is starting")
        return info

    def _check_voices(self, presets: Sequence[str]) -> None:
        voice = self.config.voice
        if voice is not None and voice not in presets:
            raise make_option_error(
                "voice", f"voice {voice!r} is not in the checkpoint; it has: {', '.join(presets)}"
            )
        validate_aliases(self.voice_aliases, presets)
