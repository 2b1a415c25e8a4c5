"""The requests of programs that are no packages of PyPI, and what must come of them."""

import base64
import json
import sys
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[2]))
from ci.clients.media import check_transcript, is_mp3, is_png, seconds_of
from ci.clients.request_files import Json, list_files, read, send

DEADLINE_S = 120


def check(line: Json, answer: httpx.Response) -> None:
    """Show what came; fail if it is not what the program needs."""
    assert answer.status_code == line.get("status", 200), answer.text
    ignored = answer.headers.get("X-Ignored-Fields", "")
    assert ignored == line.get("ignored", ""), ignored
    if answer.status_code != 200:
        error = answer.json()["error"]
        print(f"  refused: {error['message']}")
        assert error["param"] == line.get("param")
    elif line["path"].endswith("/speech"):
        check_speech(line["json"].get("response_format", "wav"), answer.content)
    elif line["path"].endswith("/transcriptions"):
        check_transcript(answer.json()["text"])
    elif line["path"].endswith("/responses"):
        check_response(read_events(answer.text))
    elif line["path"].endswith("/completions"):
        check_chat(line["json"], answer)
    else:
        (_, listed), *_ = ((k, v) for k, v in answer.json().items() if isinstance(v, list))
        print(f"  {len(listed)} listed")
        assert listed


def read_events(text: str) -> list[Json]:
    """The JSON of the events of a stream."""
    lines = (line.removeprefix("data: ") for line in text.splitlines() if line[:6] == "data: ")
    return [json.loads(line) for line in lines if line != "[DONE]"]


def check_speech(form: str, sound: bytes) -> None:
    if form == "wav":
        seconds = seconds_of(sound, complete=False)
        print(f"  {seconds:.1f} s")
        assert seconds > 1
    else:
        print("  an MP3 file")
        assert is_mp3(sound)


def check_response(events: list[Json]) -> None:
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    print(f"  {len(deltas)} deltas")
    assert "".join(deltas)
    assert events[-1]["type"] == "response.completed"


def check_chat(asked: Json, answer: httpx.Response) -> None:
    """The answer has text, sound and images as asked for, and says why it ended."""
    if asked.get("stream"):
        assert answer.text.rstrip().endswith("data: [DONE]")
        chunks = read_events(answer.text)
        choices = [choice for chunk in chunks for choice in chunk["choices"]]
        parts = [choice["delta"] for choice in choices]
        if asked.get("stream_options"):
            assert chunks[-1]["usage"]["completion_tokens"] > 0
    else:
        choices = answer.json()["choices"]
        parts = [choice["message"] for choice in choices]
    ending = choices[-1]["finish_reason"]
    text = "".join(part.get("content") or "" for part in parts)
    pieces = [part["audio"].get("data") or "" for part in parts if part.get("audio")]
    sound = b"".join(map(base64.b64decode, pieces))
    images = [image for part in parts for image in part.get("images") or ()]
    shown = f"{', and sound' * bool(sound)}{', and an image' * bool(images)}"
    print(f"  {text!r:.60}, {ending}{shown}")
    assert ending in ("stop", "length", "tool_calls")
    wanted = asked.get("modalities", ["text"])
    assert bool(sound) == ("audio" in wanted)
    assert bool(images) == ("image" in wanted)
    assert all(is_png(read_data_uri(image["image_url"]["url"])) for image in images)
    assert bool(text) == ("text" in wanted) or ending == "tool_calls"
    if sound:
        assert seconds_of(sound, complete=not asked.get("stream")) > 0


def read_data_uri(uri: str) -> bytes:
    """The bytes of a `data:` URI in base64."""
    return base64.b64decode(uri.partition(";base64,")[2])


def main(url: str) -> int:
    """The number of requests that were not answered as they should be."""
    failed = 0
    with httpx.Client(base_url=url.removesuffix("/v1"), timeout=DEADLINE_S) as client:
        for file in list_files():
            print(f"== {file.stem}")
            for line in read(file):
                print(f"-- {line['name']}")
                try:
                    check(line, send(client, line))
                except AssertionError as error:
                    print(f"  failed: {error}")
                    failed += 1
    print(f"{failed} failed" if failed else "ok")
    return failed


sys.exit(main(sys.argv[1]))
