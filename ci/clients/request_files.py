"""Requests that programs send which are no packages of PyPI, from `requests/`.

A line of a file is one request: method, path, and its JSON or the fields of a form, to which a
recording is added. `$picture`, `$sound` and `$video` stand for data URIs. What is to come of it is
a good answer, or the error of a `status` that names the field `param`; and the header
`X-Ignored-Fields`, as `ignored`. The examples of other servers name the checkpoint that these
serve; here they name the model that is served here.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from ci.clients.media import RECORDING

REQUESTS = Path(__file__).parent / "requests"
MEDIA = {
    "$picture": ("picture.png", "image/png"),
    "$sound": ("sound.ogg", "audio/ogg"),
    "$video": ("film.mp4", "video/mp4"),
}
Json = dict[str, Any]


def read(file: Path) -> Iterator[Json]:
    """The requests of a program, with their media."""
    text = file.read_text(encoding="utf-8")
    for mark, (name, kind) in MEDIA.items():
        data = base64.b64encode((REQUESTS / "media" / name).read_bytes()).decode()
        text = text.replace(mark, f"data:{kind};base64,{data}")
    return (json.loads(line) for line in text.splitlines())


def send(client: httpx.Client, line: Json) -> httpx.Response:
    """Send a request."""
    if "form" in line:
        files = {"file": (RECORDING.name, RECORDING.read_bytes())}
        return client.request(line["method"], line["path"], data=line["form"], files=files)
    return client.request(line["method"], line["path"], json=line.get("json"))


def list_files() -> list[Path]:
    """Return the files, one for each program."""
    return sorted(REQUESTS.glob("*.jsonl"))
