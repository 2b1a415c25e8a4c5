"""Puts the server together: configuration, engines, pipeline. Owns the engines' lives."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sglang_omni.config import Config, RealtimeOptions
from sglang_omni.engine.process import EngineProcess
from sglang_omni.errors import ConfigError, EngineUnavailable
from sglang_omni.models.ming.text.front import warm_up
from sglang_omni.models.ming.tokenizer import ThinkerTokenizer
from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest
from sglang_omni.pipeline.respond import Pipeline
from sglang_omni.senses import Senses
from sglang_omni.specs import talker_spec, thinker_spec
from sglang_omni.talker.contract import TalkerInfo
from sglang_omni.thinker.contract import ThinkerInfo


class Server:
    """The engines of one checkpoint and the pipeline over them; what the API talks to."""

    def __init__(self, config: Config, checkpoint: Path) -> None:
        """Read the tokenizer; nothing is started. Raises `StartupError`."""
        self.config = config
        self._tokenizer = ThinkerTokenizer(checkpoint)
        self._senses = Senses(config, checkpoint)
        specs = (thinker_spec(config, checkpoint), talker_spec(config, checkpoint))
        self._engines = {spec.name: EngineProcess(spec) for spec in specs}
        self.processes = {**self._engines, **self._senses.processes}

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

    async def stop(self) -> None:
        """Stop every engine; nothing of them is left when this returns."""
        stops = (engine.stop() for engine in self._engines.values())
        await asyncio.gather(self._senses.stop(), *stops)

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
        """Whether every engine is loaded and has done its warm-up."""
        return all(process.health.state == "ready" for process in self.processes.values())

    def engines(self) -> dict[str, dict[str, Any]]:
        """State and counters of each engine, and of the cache in front of each encoder."""
        states = {name: asdict(process.health) for name, process in self.processes.items()}
        for name, counters in self._senses.counters().items():
            states[name]["counters"] = {**states[name]["counters"], **counters}
        return states

    def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Answer a chat."""
        return self._pipeline().respond(request)

    def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        """Read a text aloud."""
        return self._pipeline().speak(request)

    def _pipeline(self) -> Pipeline:
        thinker: ThinkerInfo | None = self.processes["thinker"].health.info
        if thinker is None:
            raise EngineUnavailable("the thinker is starting")
        return Pipeline(
            perception=self._senses.perception,
            thinker=self.processes["thinker"],
            talker=self.processes["talker"],
            tokenizer=self._tokenizer,
            context_length=thinker.context_length,
            segmenting=self.config.segment,
        )

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
