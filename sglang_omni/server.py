"""Puts the server together: configuration, engines, pipeline. Owns the engines' lives."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from sglang_omni.admission.door import Door
from sglang_omni.admission.turnstile import QueueRules
from sglang_omni.config import Config, RealtimeOptions
from sglang_omni.engine.process import EngineProcess
from sglang_omni.errors import ConfigError, EngineUnavailable, Forbidden, RequestNotFound
from sglang_omni.models.ming.text.front import warm_up
from sglang_omni.models.ming.tokenizer import ThinkerTokenizer
from sglang_omni.observe.sglang import SGLangMetrics
from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest
from sglang_omni.pipeline.respond import Pipeline
from sglang_omni.senses import Senses
from sglang_omni.specs import talker_spec, thinker_spec
from sglang_omni.talker.contract import TalkerInfo
from sglang_omni.thinker.contract import ThinkerInfo
from sglang_omni.voices.opening import open_shelf


class Server:
    """The engines of one checkpoint and the pipeline over them; what the API talks to."""

    def __init__(self, config: Config, checkpoint: Path) -> None:
        """Read the tokenizer; nothing is started. Raises `StartupError`."""
        self.config = config
        self._tokenizer = ThinkerTokenizer(checkpoint)
        self._senses = Senses(config, checkpoint)
        self._sglang = SGLangMetrics()
        thinker = thinker_spec(config, checkpoint, self._sglang.environment)
        specs = (thinker, talker_spec(config, checkpoint))
        self._engines = {spec.name: EngineProcess(spec) for spec in specs}
        self.shelf = open_shelf(config, checkpoint, self._senses.intake, self._engines["talker"])
        self.processes = {**self._engines, **self._senses.processes}
        rules = QueueRules(config.admission.queue_length, config.admission.queue_seconds)
        self._door = Door(self.processes, rules, config.request_timeout)
        # Set by whoever ends the server; see `Backend.draining`.
        self.draining = asyncio.Event()

    async def start(self) -> None:
        """Start every engine. Raises `StartupError` of the first that fails; stops the others."""
        starts = [asyncio.create_task(engine.start()) for engine in self._engines.values()]
        starts.append(asyncio.create_task(self._senses.start()))
        # The text front end loads grammars; without this the first speech would wait for them.
        starts.append(asyncio.create_task(asyncio.to_thread(warm_up)))
        try:
            await asyncio.gather(*starts)
            self._check_voice()
        except BaseException:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
            await self.stop()
            raise

    async def stop(self, deadline_s: float = 10.0) -> None:
        """Stop every engine; what is left after `deadline_s` is killed.

        Requests in flight fail at once, with an error that their clients see.
        """
        stops = (engine.stop(deadline_s) for engine in self._engines.values())
        await asyncio.gather(self._senses.stop(deadline_s), *stops)
        self._sglang.close()

    @property
    def model(self) -> str:
        """The served model name."""
        return self.config.served_model_name

    @property
    def max_tokens(self) -> int:
        """The most tokens one answer may have."""
        return self.config.max_tokens

    @property
    def deterministic_text(self) -> bool:
        """Whether a seed fixes sampled text."""
        return self.config.thinker.deterministic

    @property
    def sample_rate(self) -> int:
        """Rate of the speech, in Hz."""
        return self._talker_info().sample_rate

    @property
    def voices(self) -> tuple[str, ...]:
        """Names of the preset voices."""
        return self._talker_info().voices

    @property
    def knows_speakers(self) -> bool:
        """Whether a voice has a speaker vector, beside what its recording sounds like."""
        return self._talker_info().knows_speakers

    @property
    def default_voice(self) -> str:
        """The preset that speaks when a request names none."""
        return self.config.voice or self.voices[0]

    @property
    def max_body_bytes(self) -> int:
        """The largest body of a request."""
        return self.config.max_body_bytes

    @property
    def realtime(self) -> RealtimeOptions:
        """Bounds of realtime sessions."""
        return self.config.realtime

    @property
    def ready(self) -> bool:
        """Whether every engine is loaded and has done its warm-up, and the server is to stay."""
        return not self.draining.is_set() and all(
            process.health.state == "ready" for process in self.processes.values()
        )

    @property
    def registries(self) -> tuple[CollectorRegistry, ...]:
        """SGLang's own metrics of the thinker."""
        return (self._sglang.registry,)

    @property
    def has_grammars(self) -> bool:
        """Whether an answer can be held to a JSON schema."""
        return self._thinker_info().has_grammars

    def token_piece(self, token_id: int) -> tuple[str, bytes]:
        """A token's name, and the bytes it adds to a text, none for a special one."""
        return self._tokenizer.token_name(token_id), self._tokenizer.token_bytes(token_id)

    def engines(self) -> dict[str, dict[str, Any]]:
        """State and counters of each engine, and of what is in front of it: the queue of the
        thinker and the talker, the cache of each encoder."""
        states = {name: asdict(process.health) for name, process in self.processes.items()}
        for name, counters in {**self._senses.counters(), **self._door.counters()}.items():
            states[name]["counters"] = {**states[name]["counters"], **counters}
        return states

    def profile(self, engine: str, name: str | None) -> str:
        """Have an engine profiled into a folder of that name, whose path is returned; None ends it.

        Raises `RequestNotFound` for an unknown engine, `Forbidden` without a folder for profiles.
        """
        folder = self.config.profile_folder
        if folder is None:
            raise Forbidden("this server was started without --profile-folder")
        if engine not in self.processes:
            known = ", ".join(self.processes)
            raise RequestNotFound(f"no engine {engine[:64]!r}; there are: {known}", param="engine")
        path = None if name is None else str(folder.resolve() / name)
        self.processes[engine].profile(path)
        return path or ""

    def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Answer a chat, once there is room for it. Raises `Overloaded` where there is none."""
        pipeline = self._pipeline()
        return self._door.serve(request, lambda: pipeline.respond(request))

    def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        """Read a text aloud, once there is room. Raises `Overloaded` where there is none."""
        pipeline = self._pipeline()
        return self._door.serve(request, lambda: pipeline.speak(request))

    def narrate(
        self, request: SpeechRequest, text: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Event, None]:
        """Read a text aloud while it is written. Raises `Overloaded` where there is no room."""
        pipeline = self._pipeline()
        return self._door.serve(request, lambda: pipeline.narrate(request, text))

    def _pipeline(self) -> Pipeline:
        return Pipeline(
            perception=self._senses.perception,
            thinker=self.processes["thinker"],
            talker=self.processes["talker"],
            tokenizer=self._tokenizer,
            context_length=self._thinker_info().context_length,
            segmenting=self.config.segment,
            open_voice=self.shelf.open,
            sample_rate=self.sample_rate,
        )

    def _thinker_info(self) -> ThinkerInfo:
        info: ThinkerInfo | None = self.processes["thinker"].health.info
        if info is None:
            raise EngineUnavailable("the thinker is starting")
        return info

    def _talker_info(self) -> TalkerInfo:
        info: TalkerInfo | None = self.processes["talker"].health.info
        if info is None:
            raise EngineUnavailable("the talker is starting")
        return info

    def _check_voice(self) -> None:
        if self.default_voice not in self.voices:
            raise ConfigError(
                f"voice {self.default_voice!r} is not in the checkpoint; it has: "
                f"{', '.join(self.voices)}",
                param="voice",
            )
