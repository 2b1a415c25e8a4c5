"""litellm: chat, text completion, responses, speech and transcription."""

import os
import sys
from pathlib import Path
from typing import Any

# Otherwise it asks the network for the prices of models first.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm

sys.path.insert(0, str(Path(__file__).parents[2]))
from ci.clients.media import LINE, RECORDING, RESULT, SUM, check_transcript, is_mp3, seconds_of

QUESTION = [{"role": "user", "content": SUM}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
            "required": ["city"],
        },
    },
}
Given = dict[str, Any]


def chat(given: Given) -> None:
    print("-- a chat, whole and streamed")
    asked = {"model": "openai/gpt-4o", "messages": QUESTION, "temperature": 0, **given}
    whole = litellm.completion(**asked)
    text = whole.choices[0].message.content
    print(f"  answer: {text!r}, {whole.usage.completion_tokens} tokens")
    assert RESULT in text
    assert whole.usage.completion_tokens > 0
    chunks = list(litellm.completion(**asked, stream=True, stream_options={"include_usage": True}))
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(choice.delta.content or "" for choice in choices) == text
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    print(f"  {len(chunks)} chunks, the same")


def call(given: Given) -> None:
    print("-- a function called")
    answer = litellm.completion(
        model="openai/gpt-4o",
        messages=[{"role": "user", "content": "How is the weather in Rome?"}],
        tools=[TOOL],
        tool_choice="required",
        **given,
    )
    (made,) = answer.choices[0].message.tool_calls
    print(f"  {made.function.name}({made.function.arguments})")
    assert made.function.name == "get_weather"
    assert any(city in made.function.arguments for city in ("Paris", "Rome"))


def other_texts(given: Given) -> None:
    print("-- a text completion")
    model = "text-completion-openai/gpt-3.5-turbo-instruct"
    whole = litellm.text_completion(model=model, prompt="The river", max_tokens=8, **given)
    print(f"  {whole.usage.completion_tokens} tokens, {whole.choices[0].finish_reason}")
    assert 0 < whole.usage.completion_tokens <= 8
    print("-- a response, whole and streamed")
    asked = {"model": "openai/gpt-4o", "input": SUM, "temperature": 0, **given}
    response = litellm.responses(**asked)
    print(f"  answer: {response.output_text!r}")
    assert RESULT in response.output_text
    deltas = [
        event.delta
        for event in litellm.responses(**asked, stream=True)
        if event.type == "response.output_text.delta"
    ]
    assert "".join(deltas) == response.output_text


def sounds(given: Given) -> None:
    print("-- a line read aloud")
    sound = litellm.speech(model="openai/tts-1", voice="alloy", input=LINE, **given).content
    print(f"  {seconds_of(sound, complete=False):.1f} s of WAV, the server's default")
    asked = {"model": "openai/tts-1", "voice": "alloy", "input": LINE, **given}
    assert is_mp3(litellm.speech(**asked, response_format="mp3").content)
    print("  an MP3 file")
    print("-- a recording written down")
    with RECORDING.open("rb") as file:
        heard = litellm.transcription(model="whisper-1", file=file, **given)
    check_transcript(heard.text)
    print(f"  {heard.duration:.1f} s, {len(heard.segments)} segment")
    assert heard.duration > 1
    assert heard.segments[-1]["end"] <= heard.duration


def main(url: str) -> None:
    given = {"api_base": url, "api_key": "none"}
    chat(given)
    call(given)
    other_texts(given)
    sounds(given)
    print("ok")


main(sys.argv[1])
