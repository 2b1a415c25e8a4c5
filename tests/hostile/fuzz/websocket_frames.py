"""Target: frames and events of the two WebSocket routes, as raw bytes after a valid handshake."""

import json
import random
import socket
import struct
import zlib
from contextlib import closing, suppress
from typing import Any

from tests.entrypoints.http.fake import Served
from tests.hostile.clients import connect, read_all
from tests.hostile.fuzz.case import Case, Finding
from tests.hostile.fuzz.mutate import ODD_VALUES, mutate_bytes, mutate_json

TARGET = "websocket"
WAIT_S = 20.0
PATHS = ("/v1/realtime", "/v1/audio/speech/stream")
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
INTERNAL_ERROR = 1011
EVENTS: dict[str, list[Any]] = {
    "/v1/realtime": [
        {"type": "session.update", "session": {"type": "realtime", "instructions": "a"}},
        {
            "type": "session.update",
            "session": {
                "type": "realtime",
                "audio": {
                    "input": {
                        "format": {"type": "audio/pcm", "rate": 24000},
                        "turn_detection": {"type": "server_vad", "threshold": 0.5},
                        "transcription": {"model": "org/ming"},
                    },
                    "output": {"format": {"type": "audio/pcmu"}, "speed": 1.2},
                },
                "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
                "tool_choice": "auto",
            },
        },
        {"type": "input_audio_buffer.append", "audio": "AAAA" * 400},
        {"type": "input_audio_buffer.commit"},
        {"type": "input_audio_buffer.clear"},
        {
            "type": "conversation.item.create",
            "previous_item_id": "root",
            "item": {
                "id": "item_1",
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "hello"}],
            },
        },
        {
            "type": "conversation.item.create",
            "item": {"type": "function_call_output", "call_id": "call_1", "output": "3"},
        },
        {"type": "conversation.item.retrieve", "item_id": "item_1"},
        {
            "type": "conversation.item.truncate",
            "item_id": "item_1",
            "content_index": 0,
            "audio_end_ms": 10,
        },
        {"type": "conversation.item.delete", "item_id": "item_1"},
        {
            "type": "response.create",
            "response": {"output_modalities": ["text"], "metadata": {"a": "b"}},
        },
        {"type": "response.create"},
        {"type": "response.cancel"},
        {"type": "output_audio_buffer.clear"},
    ],
    "/v1/audio/speech/stream": [
        {"type": "session.config", "response_format": "wav", "speed": 1.1, "voice": "river"},
        {"type": "input.text", "text": "Hello there. "},
        {"type": "input.done"},
        {"type": "session.close"},
    ],
}


def make(source: random.Random) -> Case:
    """The frames of one session."""
    path = source.choice(PATHS)
    frames = [_event(source, path) for _ in range(source.randint(1, 12))]
    for _ in range(source.randint(0, 2)):
        frames.insert(source.randint(0, len(frames)), _odd_frame(source))
    data = b"".join(frames)
    if source.random() < 0.2:
        data = mutate_bytes(source, data, 2)
    if source.random() < 0.5:
        data += frame(CLOSE, struct.pack(">H", 1000))
    return Case(TARGET, path, data)


def frame(opcode: int, payload: bytes, *, bits: int = 0x80, masked: bool = True) -> bytes:
    """One frame; `bits` are those in front of the opcode: FIN, RSV1, RSV2, RSV3."""
    mask_bit, size = 0x80 if masked else 0, len(payload)
    if size < 126:
        length = bytes([mask_bit | size])
    elif size < 1 << 16:
        length = bytes([mask_bit | 126]) + struct.pack(">H", size)
    else:
        length = bytes([mask_bit | 127]) + struct.pack(">Q", size)
    # A mask of zeros leaves the payload readable in a kept case.
    return bytes([bits | opcode]) + length + (bytes(4) if masked else b"") + payload


def _event(source: random.Random, path: str) -> bytes:
    event = source.choice(EVENTS[path])
    chance = source.random()
    if chance < 0.5:
        event = mutate_json(source, event)
    elif chance < 0.55:
        event = source.choice(ODD_VALUES)
    text = json.dumps(event).encode()
    if source.random() < 0.05:
        text = mutate_bytes(source, text)
    if source.random() < 0.1 and len(text) > 2:
        cut = source.randrange(1, len(text))
        return frame(TEXT, text[:cut], bits=0) + frame(0, text[cut:])
    return frame(TEXT, text)


def _odd_frame(source: random.Random) -> bytes:
    deep = b"[" * 20_000
    return source.choice(
        (
            frame(source.choice((3, 7, 11, 15)), b"x"),
            frame(PING, b"p" * 126),
            frame(PING, b"p", bits=0),
            frame(PING, b"p" * source.randint(0, 125)),
            frame(PONG, b""),
            frame(TEXT, b"{}", masked=False),
            frame(TEXT, b"\xff\xfe"),
            frame(TEXT, b"\xed\xa0\x80"),
            frame(TEXT, deep),
            frame(TEXT, b'{"type":' + deep),
            frame(TEXT, b'{"type": "a", "type": "b"}'),
            frame(BINARY, source.randbytes(50)),
            frame(0, b"continues nothing"),
            frame(TEXT, b"{", bits=0) + frame(TEXT, b"}"),
            frame(TEXT, b"{}", bits=0xC0),
            frame(TEXT, zlib.compress(bytes(1 << 20), 9), bits=0xC0),
            frame(CLOSE, b"x"),
            frame(CLOSE, struct.pack(">H", source.choice((0, 999, 1005, 1006, 1015, 5000, 65535)))),
            frame(CLOSE, struct.pack(">H", 1000) + b"\xff"),
            frame(CLOSE, struct.pack(">H", 1000) + b"r" * 124),
            bytes([0x81, 0xFF])
            + struct.pack(">Q", source.choice((2**63, 2**40, 2**31)))
            + bytes(4),
            bytes([0x81, 0xFE, 0, 5]) + bytes(4) + b"hello",
            b"GET / HTTP/1.1\r\n\r\n",
        )
    )


def play(served: Served, case: Case) -> None:
    """Send the frames of a session. It must end in time, and not by a fault of the server."""
    with closing(connect(served, WAIT_S)) as end:
        end.sendall(_handshake(case.about))
        head = b""
        while b"\r\n\r\n" not in head:
            piece = end.recv(65_536)
            if not piece:
                raise Finding(f"the handshake was answered with {head[:100]!r}")
            head += piece
        if not head.startswith(b"HTTP/1.1 101"):
            if head.startswith((b"HTTP/1.1 429", b"HTTP/1.1 503")):
                return
            raise Finding(f"the handshake was answered with {head[:100]!r}")
        with suppress(BrokenPipeError, ConnectionResetError):
            end.sendall(case.data)
            end.shutdown(socket.SHUT_WR)
        try:
            answer = head.partition(b"\r\n\r\n")[2] + read_all(end)
        except TimeoutError:
            raise Finding(f"the session is open after {WAIT_S:g} s") from None
    for opcode, payload in read_frames(answer):
        told = opcode == CLOSE and payload[:2] == struct.pack(">H", INTERNAL_ERROR)
        if told and not _may_close_with(case.data, INTERNAL_ERROR):
            raise Finding(f"the session was closed with {INTERNAL_ERROR}: {payload[2:]!r}")
        if opcode == TEXT and b'"internal_error"' in payload:
            raise Finding(f"an internal error was told: {payload[:300]!r}")


def _may_close_with(data: bytes, code: int) -> bool:
    """Whether a client may have sent that code itself: the server repeats it (RFC 6455, 5.5.1).

    A frame may start anywhere in data that were changed.
    """
    return any(
        data[place] & 0x0F == CLOSE and _unmask(data[place + 2 : place + 8]) == code
        for place in range(len(data) - 7)
    )


def _unmask(mask_and_code: bytes) -> int:
    mask, payload = mask_and_code[:2], mask_and_code[4:]
    return int.from_bytes(mask, "big") ^ int.from_bytes(payload, "big")


def _handshake(path: str) -> bytes:
    return (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
    ).encode()


def read_frames(data: bytes) -> list[tuple[int, bytes]]:
    """The frames that a server sent, as opcode and payload; a last one that is cut off is left out.

    Raises `Finding` for a masked one.
    """
    frames, place = [], 0
    while place + 2 <= len(data):
        opcode, size = data[place] & 0x0F, data[place + 1]
        if size & 0x80:
            raise Finding("the server sent a masked frame")
        place += 2
        if size >= 126:
            width = 2 if size == 126 else 8
            size = int.from_bytes(data[place : place + width], "big")
            place += width
        if place + size > len(data):
            break
        frames.append((opcode, data[place : place + size]))
        place += size
    return frames
