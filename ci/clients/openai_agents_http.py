"""openai-agents: its runner by responses and by chat, and its voice pipeline, with its defaults."""

import asyncio
import sys
from pathlib import Path

import numpy as np
from agents import (
    Agent,
    ModelSettings,
    Runner,
    function_tool,
    set_default_openai_api,
    set_default_openai_client,
    set_tracing_disabled,
)
from agents.voice import (
    AudioInput,
    SingleAgentVoiceWorkflow,
    StreamedAudioInput,
    VoicePipeline,
)
from openai import AsyncOpenAI

sys.path.insert(0, str(Path(__file__).parents[2]))
from ci.clients.media import SUM, read_samples

DEADLINE_S = 150
RATE = 24_000  # of the samples that it sends and plays
INSTRUCTIONS = "You are a friendly assistant."
called: list[tuple[int, int]] = []


@function_tool
def add(left: int, right: int) -> int:
    """Add two numbers."""
    called.append((left, right))
    return left + right


async def answers() -> None:
    agent = Agent(name="Assistant", instructions=INSTRUCTIONS)
    whole = await Runner.run(agent, SUM)
    print(f"  answer: {whole.final_output!r}")
    assert whole.final_output
    streamed = Runner.run_streamed(agent, SUM)
    deltas = [
        event.data.delta
        async for event in streamed.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    assert "".join(deltas) == streamed.final_output
    print("  and in deltas")
    history = [*whole.to_input_list(), {"role": "user", "content": "And what is 3 + 4?"}]
    more = await Runner.run(agent, history)
    assert more.final_output


async def tools() -> None:
    called.clear()
    settings = ModelSettings(tool_choice="required", temperature=0)
    agent = Agent(name="Adder", tools=[add], model_settings=settings)
    result = await Runner.run(agent, SUM)
    kinds = [item.type for item in result.new_items]
    print(f"  {', '.join(kinds)}")
    assert called
    assert kinds[:2] == ["tool_call_item", "tool_call_output_item"]
    # It was told the result. What so small a model makes of it may be nothing.
    assert len(result.raw_responses) == 2


async def voice(sound: AudioInput | StreamedAudioInput) -> None:
    """Answer a recording, or a microphone until it has heard an answer."""
    agent = Agent(name="Assistant", instructions=INSTRUCTIONS)
    result = await VoicePipeline(workflow=SingleAgentVoiceWorkflow(agent)).run(sound)
    heard = 0
    async for event in result.stream():
        if event.type == "voice_stream_event_error":
            raise event.error
        if event.type == "voice_stream_event_audio" and event.data is not None:
            heard += len(event.data)
        if event.type == "voice_stream_event_lifecycle":
            print(f"  {event.event}")
            if event.event == "turn_ended" and isinstance(sound, StreamedAudioInput):
                await sound.add_audio(None)
    print("  a spoken answer")
    assert heard > RATE // 10, heard


async def microphone(samples: np.ndarray) -> StreamedAudioInput:
    """What a microphone gives: the samples, and silence after them."""
    sound = StreamedAudioInput()
    for piece in np.array_split(np.append(samples, np.zeros(2 * RATE, np.int16)), 50):
        await sound.add_audio(piece)
    return sound


async def main(url: str) -> None:
    set_tracing_disabled(disabled=True)
    set_default_openai_client(AsyncOpenAI(base_url=url, api_key="none"))
    async with asyncio.timeout(DEADLINE_S):
        for api in ("responses", "chat_completions"):
            print(f"-- {api}")
            set_default_openai_api(api)
            await answers()
            await tools()
        set_default_openai_api("responses")
        samples, rate = read_samples()
        recorded = np.frombuffer(samples, np.int16)
        print("-- a voice pipeline, of a recording")
        await voice(AudioInput(recorded, frame_rate=rate))
        print("-- a voice pipeline, of a microphone")
        places = np.arange(0, len(recorded), rate / RATE)
        heard = np.interp(places, np.arange(len(recorded)), recorded).astype(np.int16)
        await voice(await microphone(heard))
    print("ok")


asyncio.run(main(sys.argv[1]))
