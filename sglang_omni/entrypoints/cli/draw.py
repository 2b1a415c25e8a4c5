"""Implements `sgl-omni draw`: draws or edits images with a running server, and writes the files."""

import base64
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from sglang_omni.entrypoints.cli.server_connection import (
    iter_objects,
    open_client,
    report_connection_errors,
)
from sglang_omni.entrypoints.startup.preflight_checks import make_write_error, require_output
from sglang_omni.protocol.errors import EngineFailed, StartupError

FILE_TYPES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp"}
GENERATIONS, EDITS = "/v1/images/generations", "/v1/images/edits"


@dataclass(frozen=True)
class DrawCommand:
    """What the command is given.

    Attributes:
        prompt: What to draw, or how to change the images.
        output: The file to write; with several images, a number follows its stem.
        count: The number of images.
        edit: Images to edit; the first one is changed.
        fields: Further fields of the request; those that are None are not sent.
        base_url: URL of the server.
        key: API key, or None.
    """

    prompt: str
    output: Path
    count: int
    edit: tuple[Path, ...]
    fields: dict[str, Any]
    base_url: str
    key: str | None = None


def draw(command: DrawCommand) -> int:
    """Draw the images of a command, and print the name of each file. Return the exit status.

    Raises:
        StartupError: A file cannot be read or written, or the server cannot be reached.
        OmniError: The server refused the request, or failed; the message is the server's.
    """
    outputs = list_outputs(command.output, command.count)
    for output in outputs:
        require_output(output)
    request = build_request(command)
    url = command.base_url.rstrip("/")
    with ExitStack() as stack:
        stack.enter_context(report_connection_errors(url))
        client = stack.enter_context(open_client(url, command.key))
        response = stack.enter_context(client.stream("POST", **request))
        _receive_images(iter_objects(response), outputs)
    return 0


def list_outputs(output: Path, count: int) -> list[Path]:
    """Return the file of each image: `output`, or with several `mill-1.png`, `mill-2.png`, ..."""
    if count == 1:
        return [output]
    return [output.with_stem(f"{output.stem}-{number}") for number in range(1, count + 1)]


def choose_file_type(output: Path) -> str:
    """Return the type of a file by its name. Raises `StartupError` if it is no image's."""
    file_type = FILE_TYPES.get(output.suffix.lower())
    if file_type is None:
        raise StartupError(f"cannot write {output}: use one of {', '.join(FILE_TYPES)}")
    return file_type


def build_request(command: DrawCommand) -> dict[str, Any]:
    """Return the route and the body of a command's request, as keyword arguments of `httpx`.

    Images to edit are sent as a form, whose fields are text. Raises `StartupError`.
    """
    body = {
        "prompt": command.prompt,
        "n": command.count,
        "output_format": choose_file_type(command.output),
        "stream": True,
        "progress": True,
        **{name: value for name, value in command.fields.items() if value is not None},
    }
    if not command.edit:
        return {"url": GENERATIONS, "json": body}
    files = [("image[]", (path.name, _read_image(path))) for path in command.edit]
    return {"url": EDITS, "data": body, "files": files}


def _read_image(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StartupError(f"cannot read {path}: {error.strerror}") from None


def _receive_images(events: Iterable[dict[str, Any]], outputs: Sequence[Path]) -> None:
    """Write each image when it is finished, and show the steps on standard error.

    Raises:
        StartupError: A file cannot be written.
        EngineFailed: The stream ended before the last image.
    """
    missing = set(range(len(outputs)))
    with tqdm(desc="drawing", unit="step", mininterval=0) as bar:
        for event in events:
            index, kind = event["image_index"], event["type"].rpartition(".")[2]
            if kind == "progress":
                bar.total = event["num_steps"] * len(outputs)
                bar.update()
            elif kind == "completed":
                _write_image(outputs[index], event)
                missing.discard(index)
    if missing:
        raise EngineFailed("the server ended the answer before the last image")


def _write_image(output: Path, event: dict[str, Any]) -> None:
    try:
        output.write_bytes(base64.b64decode(event["b64_json"]))
    except OSError as error:
        raise make_write_error(output, error) from None
    # Above the progress, which stays the last line of the terminal.
    tqdm.write(f"wrote {output}: {event['size']}, seed {event['seed']}")
