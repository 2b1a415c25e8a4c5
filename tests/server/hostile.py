"""A folder of hostile media, made on the spot: what is sent, and what the answer must say."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.media.files import clip, encoded, movie, picture, png, wav

FORMS = {"image": "image_url", "audio": "audio_url", "video": "video_url"}


@dataclass(frozen=True)
class Hostile:
    """A medium in a file, or behind an address, and a word of its refusal."""

    name: str
    kind: str
    source: bytes | str
    refusal: str

    def part(self, folder: Path) -> dict[str, Any]:
        """The message part that shows it, the file inside the request."""
        from tests.server.chats import data_uri

        address = self.source
        if isinstance(address, bytes):
            file = folder / self.name
            file.write_bytes(address)
            address = data_uri(file)
        form = FORMS[self.kind]
        return {"type": form, form: {"url": address}}


def hostile_files() -> Iterator[Hostile]:
    """Bombs, cut and forged files."""
    deflated = zlib.compress(bytes(60_000_000), 9)
    good, film = encoded(picture()), movie(12)
    yield Hostile("bomb.png", "image", png(50_000, 50_000, b""), "pixels")
    yield Hostile("deflate.png", "image", png(30_000, 30_000, deflated), "pixels")
    yield Hostile("cut.png", "image", good[: len(good) // 2], "truncated")
    yield Hostile("text.png", "image", b"<html>no picture</html>", "not an image")
    yield Hostile("forged.gif", "image", b"GIF89a\xff\xff\xff\xff\x00\x00\x00", "not an image")
    yield Hostile("empty.png", "image", b"", "empty")
    yield Hostile("thin.png", "image", encoded(picture(size=(3000, 2))), "times as long as wide")
    yield Hostile("cut.mp4", "video", film[: len(film) // 2], "no video stream")
    yield Hostile("long.mp4", "video", movie(10_000, size=(32, 32)), "frames")
    yield Hostile(
        "sound.mp4", "video", wav(np.zeros(16_000, np.float32), 16_000), "no video stream"
    )
    yield Hostile(
        "nan.wav", "audio", wav(np.full(16_000, np.nan, np.float32), 16_000, "FLOAT"), "finite"
    )
    yield Hostile("short.wav", "audio", wav(np.zeros(10, np.float32), 16_000), "short")
    silence = np.zeros((301 * 8_000, 1), np.float32)
    yield Hostile("endless.flac", "audio", clip("flac", "flac", silence, 8_000), "longer")


def hostile_addresses() -> Iterator[Hostile]:
    """Machines and files that a request must not reach, in every notation."""
    hosts = ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "017700000001", "[::1]"]
    hosts += ("[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "169.254.169.254", "localhost", "10.0.0.1")
    for host in hosts:
        yield Hostile(host, "image", f"http://{host}/x.png", "")
    for path in ("/etc/passwd", "file:///etc/passwd", "../../etc/passwd", "ftp://example.com/x"):
        yield Hostile(path, "image", path, "")
    yield Hostile("user", "image", "http://user:password@example.com/", "")
    yield Hostile("port", "image", "http://example.com:22/", "")
    yield Hostile("base64", "image", "data:image/png;base64,@@@@", "base64")
