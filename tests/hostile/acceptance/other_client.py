"""The other client: an ordinary user of the server, whose waits are measured."""

import json
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_websocket

from tests.hostile.acceptance.files import data_uri, small_picture
from tests.hostile.acceptance.target import CHATS, MODEL, SPEECH, Target, chat

QUESTION = "What is 17 + 25?"
SENTENCE = "The train leaves at noon."
READY_PERIOD_S = 0.25
# Short answers are asked for more often, so that their 95th percentile is not their maximum.
ROUND = ("chat", "picture", "chat", "picture", "picture", "speech", "realtime")
Waits = dict[str, list[float]]


class Failure(Exception):
    """An answer that an ordinary client must not get."""


@dataclass
class OtherClient:
    """Asks one thing after the other, by turns: text, a picture, speech and a realtime turn.

    `waits` has the seconds of each: of text to the whole answer, of speech and of realtime turns to
    the first sound. `failures` says what went wrong, `unready` how often `/ready` was not 200.
    """

    target: Target
    waits: Waits = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)
    unready: int = 0
    readiness_checks: int = 0

    def run(self, seconds: float) -> None:
        """Ask for so long, and watch whether the server is ready."""
        ending = threading.Event()
        watching = threading.Thread(target=self._watch_readiness, args=(ending,))
        watching.start()
        try:
            self._ask_until(time.monotonic() + seconds)
        finally:
            ending.set()
            watching.join()

    def _ask_until(self, end: float) -> None:
        with self.target.client() as client:
            session = RealtimeSession(self.target)
            kinds: dict[str, Callable[[], float]] = {
                "chat": lambda: ask_chat(client, chat(QUESTION, temperature=0)),
                "picture": lambda: ask_chat(client, picture_chat()),
                "speech": lambda: ask_speech(client),
                "realtime": session.turn,
            }
            while time.monotonic() < end:
                for kind in ROUND:
                    self._measure(kind, kinds[kind])
            session.close()

    def _measure(self, kind: str, ask: Callable[[], float]) -> None:
        try:
            self.waits[kind].append(ask())
        except (Failure, httpx.HTTPError, WebSocketException, OSError, TimeoutError) as error:
            self.failures.append(f"{kind}: {type(error).__name__}: {error}"[:300])

    def _watch_readiness(self, ending: threading.Event) -> None:
        with self.target.client(10.0) as client:
            while not ending.wait(READY_PERIOD_S):
                try:
                    ready = client.get("/ready").status_code == 200
                except httpx.HTTPError:
                    ready = False
                self.readiness_checks += 1
                self.unready += not ready

    def p95(self) -> dict[str, float]:
        """Return the 95th percentile of the waits of each kind, in seconds."""
        return {kind: round(percentile_95(waits), 4) for kind, waits in self.waits.items()}


def percentile_95(values: list[float]) -> float:
    """Return the 95th percentile, between the two nearest values."""
    if len(values) < 2:
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def picture_chat() -> dict[str, object]:
    """Return a question about a small picture that is the same every time."""
    url = data_uri(small_picture(), "image/png")
    image = {"type": "image_url", "image_url": {"url": url}}
    return chat(image, "What colour is it?", max_tokens=4, temperature=0)


def ask_chat(client: httpx.Client, body: dict[str, object]) -> float:
    """Return the seconds to the whole answer. Raises `Failure`."""
    started_at = time.monotonic()
    reply = client.post(CHATS, json=body)
    if reply.status_code != 200:
        raise Failure(f"{reply.status_code}: {reply.text}")
    return time.monotonic() - started_at


def ask_speech(client: httpx.Client) -> float:
    """Return the seconds to the first sound; the stream is read to its end. Raises `Failure`."""
    body = {"model": MODEL, "input": SENTENCE, "response_format": "pcm", "seed": 1}
    started_at, waited = time.monotonic(), 0.0
    with client.stream("POST", SPEECH, json=body) as reply:
        if reply.status_code != 200:
            raise Failure(f"{reply.status_code}: {reply.read().decode()}")
        for _ in reply.iter_raw():
            waited = waited or time.monotonic() - started_at
    return waited


class RealtimeSession:
    """A session that lasts as long as the server lets it, opened when a turn needs it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._connection: ClientConnection | None = None

    def turn(self) -> float:
        """Ask in text and return the seconds to the first sound of the answer. Raises `Failure`."""
        connection = self._connected()
        content = [{"type": "input_text", "text": QUESTION}]
        item = {"type": "message", "role": "user", "content": content}
        started_at, waited = time.monotonic(), 0.0
        try:
            connection.send(json.dumps({"type": "conversation.item.create", "item": item}))
            response = {"conversation": "none", "input": [item]}
            connection.send(json.dumps({"type": "response.create", "response": response}))
            while (event := json.loads(connection.recv(timeout=30)))["type"] != "response.done":
                if event["type"] == "error":
                    raise Failure(str(event["error"]))
                if event["type"] == "response.output_audio.delta":
                    waited = waited or time.monotonic() - started_at
        except BaseException:
            self.close()
            raise
        if event["response"]["status"] != "completed":
            raise Failure(str(event["response"]["status_details"]))
        return waited

    def close(self) -> None:
        """Close the session; the next turn opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> ClientConnection:
        if self._connection is None:
            self._connection = connect_websocket(
                self._target.realtime_url, additional_headers=self._target.headers, max_size=None
            )
        return self._connection
