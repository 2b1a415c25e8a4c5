"""Puts the server together: configuration, engines, pipeline. Owns the engines' lives."""

import asyncio
import glob
import os
from collections.abc import AsyncGenerator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sglang_omni.config import Config
from sglang_omni.engine.process import EngineProcess, ProcessSpec
from sglang_omni.errors import ConfigError, EngineUnavailable
from sglang_omni.models.ming.text.front import warm_up
from sglang_omni.models.ming.tokenizer import ThinkerTokenizer
from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest
from sglang_omni.pipeline.respond import Pipeline
from sglang_omni.talker.contract import TalkerInfo, TalkerSettings
from sglang_omni.thinker.contract import ThinkerInfo, ThinkerSettings
from sglang_omni.thinker.launch import environment


def resolve_device(device: str) -> str:
    """`auto` is CUDA where a card is visible, else the CPU."""
    if device != "auto":
        return device
    return "cuda" if glob.glob("/dev/nvidia[0-9]*") else "cpu"


def resolve_dtype(dtype: str, device: str) -> str:
    """`auto` is bfloat16 on a card and float32 on a CPU, which has no fast bfloat16."""
    if dtype != "auto":
        return dtype
    return "bfloat16" if device == "cuda" else "float32"


def thinker_spec(config: Config, checkpoint: Path) -> ProcessSpec:
    """The thinker engine of a configuration."""
    options, device = config.thinker, resolve_device(config.device)
    settings = ThinkerSettings(
        checkpoint=checkpoint,
        device=device,
        dtype=resolve_dtype(config.dtype, device),
        tp_size=options.tp_size,
        gpus=options.gpus,
        context_length=options.context_length,
        max_total_tokens=options.max_total_tokens,
        max_running_requests=options.max_running_requests,
        mem_fraction_static=options.mem_fraction_static,
        radix_cache=options.radix_cache,
        deterministic=options.deterministic,
        server_args=tuple(options.server_args.items()),
    )
    return ProcessSpec(
        "thinker",
        "sglang_omni.thinker.worker:open_worker",
        settings,
        environment(settings, threads=_threads()),
        start_deadline_s=options.start_deadline_s,
    )


def talker_spec(config: Config, checkpoint: Path) -> ProcessSpec:
    """The talker engine of a configuration."""
    options, device = config.talker, resolve_device(config.device)
    settings = TalkerSettings(
        checkpoint=checkpoint,
        device=device if device == "cpu" else f"cuda:{options.gpu}",
        dtype=resolve_dtype(config.dtype, device),
        slots=options.slots,
        min_patches=options.min_patches,
        max_patches=options.max_patches,
        context=options.context,
        threads=_threads() if device == "cpu" else None,
    )
    return ProcessSpec(
        "talker",
        "sglang_omni.talker.worker:open_worker",
        settings,
        {"OMP_NUM_THREADS": str(_threads())} if device == "cpu" else {},
        start_deadline_s=options.start_deadline_s,
    )


def _threads() -> int:
    """Half of the cores for each of the two engines that compute on a CPU."""
    return max(1, len(os.sched_getaffinity(0)) // 2)


class Server:
    """The engines of one checkpoint and the pipeline over them; what the API talks to."""

    def __init__(self, config: Config, checkpoint: Path) -> None:
        """Read the tokenizer; nothing is started. Raises `StartupError`."""
        self.config = config
        self._tokenizer = ThinkerTokenizer(checkpoint)
        self.processes = {
            spec.name: EngineProcess(spec)
            for spec in (thinker_spec(config, checkpoint), talker_spec(config, checkpoint))
        }

    async def start(self) -> None:
        """Start every engine. Raises `StartupError` of the first that fails; stops the others."""
        starts = [asyncio.create_task(process.start()) for process in self.processes.values()]
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
        await asyncio.gather(*(process.stop() for process in self.processes.values()))

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
    def ready(self) -> bool:
        """Whether every engine is loaded and has done its warm-up."""
        return all(process.health.state == "ready" for process in self.processes.values())

    def engines(self) -> dict[str, dict[str, Any]]:
        """State and counters of each engine."""
        return {name: asdict(process.health) for name, process in self.processes.items()}

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
