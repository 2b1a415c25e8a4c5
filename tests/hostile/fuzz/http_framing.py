"""Target: request lines, headers and the framing of bodies, as raw bytes on a connection."""

import json
import random
import re
import socket
from contextlib import closing, suppress

from tests.entrypoints.http.fake import Served
from tests.hostile.clients import CHAT, connect, read_all
from tests.hostile.fuzz.case import Case, Finding
from tests.hostile.fuzz.mutate import mutate_bytes

TARGET = "http"
# Longer than every limit of the server that is fuzzed, and than it waits for a close frame.
WAIT_S = 20.0
STATUS = re.compile(rb"^HTTP/1\.[01] (\d{3}) ", re.MULTILINE)
METHODS = (
    b"GET",
    b"POST",
    b"HEAD",
    b"DELETE",
    b"OPTIONS",
    b"CONNECT",
    b"PRI",
    b"get",
    b"G\x00T",
    b"",
)
PATHS = (
    *(b"/health", b"/v1/chat/completions", b"/v1/models", b"/v1/audio/speech", b"/metrics", b"/"),
    *(
        b"http://localhost/health",
        b"//health",
        b"/%",
        b"/%zz",
        b"/%00",
        b"/%ff%fe",
        b"/..%2f..",
        b"*",
    ),
    *(
        b"/health?%",
        b"/v1/realtime",
        b"/\xff\xfe",
        b"/a b",
        b"/v1/audio/voices/%2e%2e%2f",
        b"#",
        b"",
    ),
    *(
        b"/playground/%2e%2e/%2e%2e/etc/passwd",
        b"/docs/../..",
        b"localhost:80",
        b"/?" + b"a" * 9000,
    ),
)
VERSIONS = (
    b"HTTP/1.1",
    b"HTTP/1.1",
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"HTTP/2.0",
    b"HTTP/9.9",
    b"HTTP/1.",
    b"X",
    b"",
)
HEADERS = (
    *(
        b"Host: localhost",
        b"Host: a\r\nHost: b",
        b"Host:",
        b"Host: [::1",
        b"Content-Type: application/json",
    ),
    *(b"Content-Length: 0", b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: 1e3"),
    *(b"Content-Length: 99999999999999999999", b"Content-Length: 5\r\nContent-Length: 6"),
    *(b"Content-Length: +5", b"Content-Length: 5,5", b"Transfer-Encoding: chunked"),
    *(
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding : chunked",
        b"Transfer-Encoding: xchunked",
    ),
    *(b"Transfer-Encoding:\tchunked", b"Connection: close", b"Connection: upgrade, keep-alive"),
    *(b"Upgrade: websocket", b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk", b"Expect: 100-continue"),
    *(
        b"Sec-WebSocket-Version: 13",
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        b"Sec-WebSocket-Key: x",
    ),
    *(
        b" folded: yes",
        b"X: a\r\n folded",
        b"X: \x00",
        b"X\x00: y",
        b"X: \xff\xfe",
        b": empty",
        b"no-colon",
    ),
    *(b"X-Request-Timeout: nan", b"X-Request-Timeout: 1e400", b"X-Request-Timeout: 0.001"),
    *(
        b"Authorization: Bearer \xff",
        b"traceparent: 00-zz",
        b"Range: bytes=0-",
        b"Cookie: " + b"a" * 3000,
    ),
    *(
        b"X-Forwarded-For: \xff, a",
        b"X-Forwarded-Proto: gopher",
        b"Content-Type: multipart/form-data",
    ),
    *(
        b"Content-Type: application/json; charset=utf-7",
        b"Content-Encoding: gzip",
        b"Origin: http://evil",
    ),
)
CHUNKS = (
    *(
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"0\r\nTrailer: x\r\n\r\n",
        b"5;ext=1\r\nhello\r\n",
        b"-1\r\n",
    ),
    *(
        b"fffffffffffffffff\r\n",
        b"5\nhello\n",
        b"05\r\nhello\r\n",
        b"0x5\r\nhello\r\n",
        b"5\r\nhel",
        b"\r\n",
    ),
    *(
        b"5;" + b"e" * 5000 + b"\r\nhello\r\n",
        b"0\r\nX: " + b"t" * 5000 + b"\r\n\r\n",
        b"2\r\n{}\r\n",
    ),
    *(b"7fffffffffffffff\r\n{", b"00000000000000000000\r\n\r\n", b"1\r\n{\r\n", b"0\r\n \r\n\r\n"),
)
BODY = json.dumps(CHAT).encode()


def make(source: random.Random) -> Case:
    """A connection's worth of bytes: some requests, one after the other."""
    data = b"".join(_request(source) for _ in range(source.choice((1, 1, 1, 2, 4, 20))))
    if source.random() < 0.4:
        data = mutate_bytes(source, data)
    return Case(TARGET, source.choice(("half-close", "wait")), data)


def _request(source: random.Random) -> bytes:
    chance = source.random()
    if chance < 0.2:
        return _good(source)
    if chance < 0.3:
        return _handshake(source)
    end = source.choice((b"\r\n",) * 8 + (b"\n", b"\r", b"\r\n\r\n"))
    blank = source.choice((b" ",) * 8 + (b"\t", b"  ", b""))
    line = blank.join((source.choice(METHODS), source.choice(PATHS), source.choice(VERSIONS)))
    lines = [line, *source.sample(HEADERS, source.randint(0, 6))]
    if source.random() < 0.8:
        lines.insert(1, b"Host: localhost")
    return end.join(lines) + end * 2 + _body(source)


def _good(source: random.Random) -> bytes:
    """A request that is served, so that what follows it on the connection is looked at."""
    framing = b"Content-Length: %d" % len(BODY)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" + framing
    return source.choice((head + b"\r\n\r\n" + BODY, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"))


def _handshake(source: random.Random) -> bytes:
    """A WebSocket's handshake with something odd in it, sometimes with frames behind it."""
    path = source.choice((b"/v1/realtime", b"/v1/audio/speech/stream", *PATHS))
    lines = [
        b"GET " + path + source.choice((b"", b"?model=org/ming", b"?\xff=%ff")) + b" HTTP/1.1",
        *(b"Host: localhost", b"Connection: Upgrade", b"Upgrade: websocket"),
        *(b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="),
        source.choice(
            (b"Sec-WebSocket-Protocol: realtime", b"Sec-WebSocket-Protocol: \xff,,", b"X: y")
        ),
    ]
    if source.random() < 0.5:
        lines[source.randrange(1, len(lines))] = source.choice(HEADERS)
    return b"\r\n".join(lines) + b"\r\n\r\n" + source.choice((b"", b"", _body(source)))


def _body(source: random.Random) -> bytes:
    match source.randrange(4):
        case 0:
            return b""
        case 1:
            return BODY
        case 2:
            return source.randbytes(source.choice((5, 100, 5000)))
        case _:
            return b"".join(source.choices(CHUNKS, k=source.randint(1, 5)))


def play(served: Served, case: Case) -> None:
    """Send it all. The connection must be answered or closed, in time and without a 500."""
    with closing(connect(served, WAIT_S)) as end:
        with suppress(BrokenPipeError, ConnectionResetError):
            end.sendall(case.data)
            if case.about == "half-close":
                end.shutdown(socket.SHUT_WR)
        try:
            answer = read_all(end)
        except TimeoutError:
            raise Finding(f"the connection is open after {WAIT_S:g} s") from None
    statuses = {int(found) for found in STATUS.findall(answer)}
    if bad := {status for status in statuses if status >= 500 and status not in (503, 504)}:
        raise Finding(f"answered with {sorted(bad)}")
    _check_framing(case.data, answer)


def _check_framing(data: bytes, answer: bytes) -> None:
    """Check that a request is not served that says twice, and differently, where its body ends.

    A proxy in front may read it the other way, and take the rest for another client's request.
    """
    head = data.split(b"\r\n\r\n")[0].lower()
    is_both = (
        b"\r\ncontent-length: " in head and b"\r\ntransfer-encoding: chunked\r" in head + b"\r"
    )
    if is_both and data.startswith((b"POST /", b"GET /")) and answer.startswith(b"HTTP/1.1 2"):
        raise Finding("served a request with both Content-Length and Transfer-Encoding")
