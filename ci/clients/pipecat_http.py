"""pipecat: a pipeline with its OpenAI text-to-speech service, which knows OpenAI's voices only."""

import asyncio
import sys
from typing import Any

from loguru import logger
from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.tts import OpenAITTSService
from pipecat.workers.runner import WorkerRunner

RATE = 24_000
DEADLINE_S = 120
LINES = ("The river runs past the old mill.", "It was built a hundred years ago.")


class Listener(FrameProcessor):
    """The end of the pipeline: the seconds of each line, in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: asyncio.Queue[float] = asyncio.Queue()
        self._samples = 0

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, ErrorFrame):
            raise AssertionError(frame.error)
        if isinstance(frame, TTSStartedFrame):
            self._samples = 0
        elif isinstance(frame, TTSAudioRawFrame):
            assert (frame.sample_rate, frame.num_channels) == (RATE, 1)
            self._samples += len(frame.audio) // 2
        elif isinstance(frame, TTSStoppedFrame):
            self.lines.put_nowait(self._samples / RATE)
        await self.push_frame(frame, direction)


def service(url: str, **settings: Any) -> OpenAITTSService:
    chosen = OpenAITTSService.Settings(model="ming-omni", voice="alloy", **settings)
    return OpenAITTSService(api_key="none", base_url=url, settings=chosen)


async def speak(speaking: OpenAITTSService) -> None:
    """Say the lines with a service, and print how long each was."""
    listener = Listener()
    worker = PipelineWorker(
        Pipeline([speaking, listener]), params=PipelineParams(audio_out_sample_rate=RATE)
    )
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    playing = asyncio.create_task(runner.run())
    for line in LINES:
        await worker.queue_frame(TTSSpeakFrame(line))
        seconds = await listener.lines.get()
        print(f"  heard {seconds:.1f} s")
        assert seconds > 0.2, seconds
    await worker.cancel()
    await playing


async def main(url: str) -> None:
    logger.remove()
    logger.add(sys.stdout, level="WARNING", format="  {level}: {message}")
    async with asyncio.timeout(DEADLINE_S):
        print("-- two lines")
        await speak(service(url))
        print("-- slower, in a manner")
        await speak(service(url, speed=0.8, instructions="Speak calmly."))
    print("ok")


asyncio.run(main(sys.argv[1]))
