"""What one client with a key can do to a server. Each attack is one round, repeated until stopped.

    python -m tests.hostile.acceptance.attacks NAME URL --seconds 60 --workers 2 < KEY

prints how the server answered, as JSON: statuses, or the kinds of errors, and how often each came.
"""

import argparse
import base64
import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import cache, partial

import httpx
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect as connect_websocket

from tests.hostile.acceptance.files import bombs, data_uri, grey_4k, small_picture
from tests.hostile.acceptance.target import CHATS, MODEL, SPEECH, Target, chat

MIB = 1 << 20
# An attacker's machine is not the server's: here it may only use what the server leaves.
NICENESS = 19
IDLE_CONNECTIONS = 500
Outcomes = Iterator[object]
Attack = Callable[[Target], Outcomes]


def post(target: Target, path: str, content: bytes) -> int:
    """Send a JSON body; return the status."""
    with target.client() as client:
        headers = {"Content-Type": "application/json"}
        return client.post(path, content=content, headers=headers).status_code


def schemas(target: Target) -> Outcomes:
    """JSON schemas that are endless, cyclic or huge."""
    cycle = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    huge = {"type": "integer", "multipleOf": 999999937, "minimum": 10**30, "maximum": 10**31}
    long = {"type": "array", "items": {"type": "integer"}, "minItems": 10**9}
    asked: tuple[Mapping[str, object], ...] = ({"$ref": "#"}, cycle, huge, long)
    for schema in asked:
        yield post_schema(target, schema)


def long_answers(target: Target) -> Outcomes:
    """A legitimate schema that only the longest answers meet."""
    yield post_schema(target, {"type": "string", "pattern": "(a{1,500}){1,500}b"})


def post_schema(target: Target, schema: Mapping[str, object]) -> int:
    """Ask for an answer of a schema; return the status."""
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    return post(target, CHATS, json.dumps(chat("hello", response_format=form)).encode())


def large_bodies(target: Target) -> Outcomes:
    """Bodies of many values, of many messages, and of many words."""
    yield post(target, CHATS, b"[" + b"[]," * (10 * MIB) + b"[]]")
    message = json.dumps({"role": "user", "content": "hi"}).encode()
    messages = b",".join([message] * 1_000_000)
    start = json.dumps({"model": MODEL})[:-1].encode() + b', "messages": ['
    yield post(target, CHATS, start + messages + b"]}")
    yield post(target, CHATS, json.dumps(chat("word " * (6 * MIB))).encode())
    speech = {"model": MODEL, "input": "word " * (6 * MIB)}
    yield post(target, SPEECH, json.dumps(speech).encode())


def large_media(target: Target) -> Outcomes:
    """Legitimate bodies of the largest size, which hold no medium that can be decoded."""
    yield post(target, CHATS, large_media_body())


@cache
def large_media_body() -> bytes:
    """Return a chat about a file of 60 MiB."""
    uri = "data:video/mp4;base64," + base64.b64encode(bytes(60 * MIB)).decode()
    part = {"type": "video_url", "video_url": {"url": uri}}
    return json.dumps(chat(part, "What is it?")).encode()


def large_instructions(target: Target) -> Outcomes:
    """Realtime instructions and items of many megabytes."""
    for megabytes in (1, 10, 20):
        session = {"type": "realtime", "instructions": "word " * (megabytes * MIB // 5)}
        yield realtime(target, [{"type": "session.update", "session": session}])
        content = [{"type": "input_text", "text": "word " * (megabytes * MIB // 5)}]
        item = {"type": "message", "role": "user", "content": content}
        yield realtime(target, [{"type": "conversation.item.create", "item": item}])


def realtime(target: Target, events: list[dict[str, object]]) -> object:
    """Send events; return the type of the answer, or the code with which the server closed."""
    with connect_websocket(
        target.realtime_url, additional_headers=target.headers, max_size=None, close_timeout=2
    ) as session:
        session.recv(timeout=20)
        for event in events:
            session.send(json.dumps(event))
        while (kind := json.loads(session.recv(timeout=20))["type"]) == "conversation.created":
            pass
        return kind


def long_heads(target: Target) -> Outcomes:
    """A header without end, headers without number, and a long URL."""
    for data in (b"x" * MIB, b"X: y\r\n" * 200_000):
        with closing(target.connect()) as end:
            end.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(300):
                    end.sendall(data)
            yield first_status(end)
    with closing(target.connect()) as end:
        end.sendall(b"GET /" + b"a" * 30_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        yield first_status(end)


def first_status(end: socket.socket) -> object:
    """Return the status of the answer on a connection, or how it ended."""
    try:
        answer = end.recv(65_536)
    except OSError as error:
        return type(error).__name__
    return int(answer.split(b" ", 2)[1]) if answer else "closed"


def slow_connections(target: Target) -> Outcomes:
    """Connections that say nothing, half a head, or half a body, for as long as they may."""
    starts = (b"", b"GET /hea", target.head(Content_Length=100), target.head() + b"{")
    with ExitStack() as stack:
        ends = [stack.enter_context(closing(target.connect())) for _ in range(IDLE_CONNECTIONS)]
        for number, end in enumerate(ends):
            end.sendall(starts[number % len(starts)])
        time.sleep(20)
        yield f"{len(ends)} connections"


def half_sent_bodies(target: Target) -> Outcomes:
    """A dozen bodies of 90 MB that never end."""
    with ExitStack() as stack:
        ends = [stack.enter_context(closing(target.connect())) for _ in range(12)]
        for end in ends:
            end.sendall(target.head(Content_Length=96 * MIB))
        for _ in range(90):
            for end in ends:
                with contextlib.suppress(OSError):
                    end.sendall(b" " * MIB)
        time.sleep(2)
        yield f"{len(ends)} bodies"


def slow_files(target: Target) -> Outcomes:
    """A dozen videos at once, each small as sent and large as decoded."""
    video = {"type": "video_url", "video_url": {"url": data_uri(grey_4k(), "video/mp4")}}
    body = json.dumps(chat(video, "What is it?", max_tokens=4)).encode()
    yield from at_once([lambda: post(target, CHATS, body)] * 12)


def costly_files(target: Target) -> Outcomes:
    """A dozen videos at once of a length that a user may send."""
    video = {"type": "video_url", "video_url": {"url": data_uri(grey_4k(300), "video/mp4")}}
    body = json.dumps(chat(video, "What is it?", max_tokens=4)).encode()
    yield from at_once([lambda: post(target, CHATS, body)] * 12)


def bad_pictures(target: Target) -> Outcomes:
    """Pictures that unpack to far more than they weigh, or that are cut off."""
    for content in (*bombs(), small_picture()[:60]):
        image = {"type": "image_url", "image_url": {"url": data_uri(content, "image/png")}}
        yield post(target, CHATS, json.dumps(chat(image, max_tokens=4)).encode())


def silent_names(target: Target) -> Outcomes:
    """Media on hosts whose names are never resolved."""

    def ask(number: int) -> object:
        url = f"http://host-{time.monotonic_ns()}-{number}.invalid/x.png"
        image = {"type": "image_url", "image_url": {"url": url}}
        return post(target, CHATS, json.dumps(chat(image, max_tokens=4)).encode())

    yield from at_once([partial(ask, number) for number in range(32)])


def unread_answers(target: Target) -> Outcomes:
    """A stream of speech of which nothing is read."""
    text = "This is a long sentence that is read aloud and that nobody listens to. " * 10
    body = json.dumps({"model": MODEL, "input": text, "stream_format": "sse"}).encode()
    with closing(target.connect()) as end:
        end.sendall(target.head(SPEECH, Content_Length=len(body)) + body)
        time.sleep(60)
        yield "left unread"


def realtime_floods(target: Target) -> Outcomes:
    """A session that is sent events without a pause and whose answers are not read."""
    event = json.dumps({"type": "session.update", "session": {"type": "realtime"}})
    with connect_websocket(
        target.realtime_url, additional_headers=target.headers, max_queue=1, close_timeout=1
    ) as session:
        sent = 0
        ending = time.monotonic() + 5
        while time.monotonic() < ending:
            session.send(event)
            sent += 1
        yield "5 s of events"


def half_closing(target: Target) -> Outcomes:
    """Requests whose sending side is closed behind them, and requests that are left at once."""
    body = json.dumps(chat("hi", max_tokens=1)).encode()
    with closing(target.connect()) as end:
        end.sendall(target.head(Content_Length=len(body), Connection="close") + body)
        end.shutdown(1)
        yield first_status(end)
    for _ in range(20):
        with closing(target.connect()) as end:
            end.sendall(target.head(Content_Length=len(body)) + body)
    yield "left 20 requests"
    # More often it would be no attack but a load, against which keys have limits.
    time.sleep(1)


ATTACKS: dict[str, Attack] = {
    one.__name__: one
    for one in (
        schemas,
        large_bodies,
        large_instructions,
        long_heads,
        slow_connections,
        half_sent_bodies,
        slow_files,
        bad_pictures,
        silent_names,
        realtime_floods,
        half_closing,
    )
}
# Ordinary requests, as many as one client likes: engines are shared fairly, but their time is used.
# Keys have limits for it (`--rate_limit`).
LOADS: dict[str, Attack] = {
    one.__name__: one for one in (large_media, costly_files, unread_answers, long_answers)
}


def at_once(calls: list[Callable[[], object]]) -> Outcomes:
    """Make calls at the same time; yield how each ended."""
    outcomes: list[object] = []
    threads = [
        threading.Thread(target=lambda call=call: outcomes.append(attempt(call))) for call in calls
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield from outcomes


def attempt(call: Callable[[], object]) -> object:
    """Make a call; return its outcome, or the kind of error."""
    try:
        return call()
    except (OSError, httpx.HTTPError, WebSocketException) as error:
        return type(error).__name__


def repeat(attack: Attack, target: Target, seconds: float, outcomes: Counter[str]) -> None:
    """Make rounds of an attack until `seconds` have passed, and count how they ended."""
    ending = time.monotonic() + seconds
    while time.monotonic() < ending:
        try:
            for outcome in attack(target):
                outcomes[str(outcome)] += 1
        except (OSError, httpx.HTTPError, WebSocketException) as error:
            outcomes[type(error).__name__] += 1


def main() -> None:
    """Attack, and print how the server answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=[*ATTACKS, *LOADS])
    parser.add_argument("url")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    os.nice(NICENESS)
    target = Target(given.url, sys.stdin.readline().strip())
    outcomes: Counter[str] = Counter()
    threads = [
        threading.Thread(
            target=repeat, args=({**ATTACKS, **LOADS}[given.name], target, given.seconds, outcomes)
        )
        for _ in range(given.workers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
