"""pipecat: a pipeline around its OpenAI realtime service, with speech and an interruption."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from loguru import logger
from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMRunFrame,
    TTSAudioRawFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
    UserStartedSpeakingFrame,
    UserStoppedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.workers.runner import WorkerRunner

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.entrypoints.realtime.sounds import RATE, pcm16, silence, voice

CHUNK_S = 0.1
CHUNK = int(RATE * CHUNK_S) * 2  # bytes
DEADLINE_S = 120
SHOWN = (
    UserStartedSpeakingFrame,
    UserStoppedSpeakingFrame,
    InterruptionFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
)


class Listener(FrameProcessor):
    """The end of the pipeline: counts sound, prints what else happens."""

    def __init__(self) -> None:
        super().__init__()
        self.sound = 0
        self.seen: list[str] = []
        self.changed = asyncio.Event()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, ErrorFrame):
            raise AssertionError(frame.error)
        if isinstance(frame, TTSAudioRawFrame):
            assert frame.sample_rate == RATE
            self.sound += len(frame.audio)
        elif isinstance(frame, SHOWN):
            print(f"  {type(frame).__name__}", flush=True)
            self.seen.append(type(frame).__name__)
        self.changed.set()
        await self.push_frame(frame, direction)

    async def until(self, name: str) -> None:
        """Wait for a frame of this name, and forget what came up to it."""
        while name not in self.seen:
            self.changed.clear()
            await self.changed.wait()
        del self.seen[: self.seen.index(name) + 1]

    async def until_sound(self, more: int) -> None:
        goal = self.sound + more
        while self.sound < goal:
            self.changed.clear()
            await self.changed.wait()


def service(url: str) -> OpenAIRealtimeLLMService:
    audio = events.AudioConfiguration(
        input=events.AudioInput(
            transcription=events.InputAudioTranscription(model="ming-omni"),
            turn_detection=events.TurnDetection(silence_duration_ms=500),
        ),
        output=events.AudioOutput(voice="DB30"),
    )
    properties = events.SessionProperties(audio=audio, max_output_tokens=300)
    return OpenAIRealtimeLLMService(
        api_key="none",
        base_url=f"{url.replace('http', 'ws')}/realtime",
        settings=OpenAIRealtimeLLMService.Settings(
            model="ming-omni",
            system_instruction="You are a friendly assistant.",
            session_properties=properties,
        ),
    )


async def say(worker: Any, seconds: float) -> None:
    sound = pcm16(voice(seconds)) + pcm16(silence(1.0))
    for begin in range(0, len(sound), CHUNK):
        piece = sound[begin : begin + CHUNK]
        await worker.queue_frame(InputAudioRawFrame(piece, sample_rate=RATE, num_channels=1))
        await asyncio.sleep(CHUNK_S)


async def scenario(worker: Any, listener: Listener) -> None:
    print("-- the model begins")
    await worker.queue_frame(LLMRunFrame())
    await listener.until("TTSStartedFrame")
    await listener.until_sound(RATE)
    print("-- the user speaks over it, and is answered")
    await say(worker, 1.0)
    await listener.until("InterruptionFrame")
    await listener.until("TTSStartedFrame")
    await listener.until_sound(RATE)
    print("-- and once more")
    await say(worker, 0.6)
    await listener.until("InterruptionFrame")
    await listener.until("TTSStartedFrame")
    await worker.cancel()


async def main(url: str) -> None:
    logger.remove()
    logger.add(sys.stdout, level="WARNING", format="  {level}: {message}")
    question = {"role": "user", "content": "Tell me about the river."}
    context = LLMContext([question])
    aggregators = LLMContextAggregatorPair(context, realtime_service_mode=True)
    listener = Listener()
    stages = [aggregators.user(), service(url), listener, aggregators.assistant()]
    parameters = PipelineParams(audio_in_sample_rate=RATE, audio_out_sample_rate=RATE)
    worker = PipelineWorker(Pipeline(stages), params=parameters)
    async with asyncio.timeout(DEADLINE_S):
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        playing = asyncio.create_task(runner.run())
        await scenario(worker, listener)
        await playing
    print("-- the context it kept")
    for message in context.get_messages():
        print(f"  {message['role']}: {message['content']!r:.50}")
    print("ok")


asyncio.run(main(sys.argv[1]))
