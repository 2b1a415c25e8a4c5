"""Implements `sgl-omni status`: prints the engines of a running server and what they are doing."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from sglang_omni.entrypoints.cli.server_connection import (
    get_error_message,
    open_client,
    report_connection_errors,
)
from sglang_omni.protocol.errors import OmniError

HEAD = ("engine", "machine", "GPUs", "state", "for", "restarts", "load")
# Columns that are left out where no engine has them.
OPTIONAL = ("machine", "GPUs")
# The machine of the server itself, where engines run on others too.
THIS_MACHINE = "local"
# The row of a store that servers share.
STORE = "shared store"
NOT_READY = 1
START_STATES = ("starting", "restarting")
UNITS = (("d", 86_400), ("h", 3600), ("min", 60))
Json = Mapping[str, Any]


def status(base_url: str, key: str | None, as_json: bool = False) -> int:
    """Print the state of a server. Return 0 if it is ready, else 1.

    Raises:
        StartupError: No server answers.
        OmniError: The server refuses to tell.
    """
    with report_connection_errors(base_url), open_client(base_url, key) as client:
        ready = client.get("/ready")
        models = client.get("/v1/models")
    if models.is_error:
        raise OmniError(get_error_message(models))
    body = ready.json()
    if as_json:
        print(json.dumps(body, indent=1))
    else:
        print("\n".join(describe(base_url, models.json()["data"][0]["id"], body, time.time())))
    return 0 if ready.status_code == httpx.codes.OK else NOT_READY


def describe(base_url: str, model: str, body: Json, now: float) -> list[str]:
    """Return the lines of a server's state.

    Args:
        base_url: Where it is.
        model: The name of its model.
        body: What `/ready` says to a caller who may see the engines.
        now: Seconds since 1970.
    """
    title = f"{base_url} · {model} · {str(body['status']).replace('_', ' ')}"
    engines: Json = body["engines"]
    places = [place for engine in engines.values() for place in _list_places(engine)]
    local = THIS_MACHINE if any(place.get("node") for place in places) else ""
    rows = [_describe_engine(name, engine, local, now) for name, engine in engines.items()]
    if store := body.get("shared_store"):
        rows.append((STORE, "", "", str(store["state"]), format_age(now - store["since"]), "", ""))
    table = _format_table(rows)
    errors = [
        f"{name}: {engine['last_error']}"
        for name, engine in engines.items()
        if engine.get("last_error")
    ]
    if store and store["last_error"]:
        errors.append(f"{STORE}: {store['last_error']}")
    return [title, *table, *errors]


def _format_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table with a head."""
    columns = [
        column
        for column in zip(HEAD, *rows, strict=True)
        if column[0] not in OPTIONAL or any(column[1:])
    ]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]


def _describe_engine(name: str, engine: Json, local: str, now: float) -> tuple[str, ...]:
    """Return the cells of an engine; `local` is what the server's own machine is called."""
    state, progress = str(engine["state"]), str(engine.get("progress") or "")
    # Progress is of the start, and stays behind it.
    shown = f"{state}: {progress}" if progress and state in START_STATES else state
    since = format_age(now - engine["since"]) if engine.get("since") else ""
    load = describe_load(engine["counters"], engine.get("info") or {})
    places = _list_places(engine)
    machines = " + ".join(place.get("node") or local for place in places)
    gpus = " + ".join(", ".join(map(str, place["gpus"])) for place in places if place.get("gpus"))
    return name, machines, gpus, shown, since, str(engine["restarts"]), load


def _list_places(engine: Json) -> list[Json]:
    """Return where an engine's processes are, the one that answers first."""
    return [engine, *engine.get("companions", ())]


def describe_load(counters: Json, info: Json) -> str:
    """Return what an engine is doing, and of how much it is capable where that is known."""
    parts = []
    if "active_slots" in counters:
        parts.append(_of(counters["active_slots"], info.get("slots"), "voices"))
    if "running" in counters:
        parts.append(_of(counters["running"], info.get("max_running_requests"), "running"))
    if queued := counters.get("queued") or counters.get("waiting"):
        parts.append(f"{queued} waiting")
    if capacity := counters.get("kv_tokens_capacity"):
        parts.append(f"KV cache {100 * counters['kv_tokens_used'] / capacity:.0f} %")
    if counters.get("rejected"):
        parts.append(f"{counters['rejected']} refused")
    return ", ".join(parts)


def _of(count: int, capacity: int | None, what: str) -> str:
    return f"{count} of {capacity} {what}" if capacity else f"{count} {what}"


def format_age(seconds: float) -> str:
    """Return a time in its largest unit: 3 min."""
    for unit, length in UNITS:
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
