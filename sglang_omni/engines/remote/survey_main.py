"""Surveys a Ray cluster: `python -m ... RAY_ADDRESS PATH...`; prints JSON and ends.

A process of its own, since it imports Ray, which starts threads and reads the environment.
"""

import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from sglang_omni.engines.remote.ray_nodes import ask_nodes, connect
from sglang_omni.engines.remote.survey import NODE_DEADLINE_S, REPORTS
from sglang_omni.protocol.errors import StartupError

CONNECT_S = 5.0


def main(ray_address: str, paths: Sequence[str]) -> int:
    """Print the reports of all nodes, or an error, as JSON. Return the exit status."""
    # Ray prints to both. Only the answer goes to the standard output.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        check_reachable(ray_address)
        connect(ray_address)
        reports = ask_nodes([Path(path) for path in paths], NODE_DEADLINE_S)
    except StartupError as error:
        content = {"error": error.message}
    else:
        content = {"nodes": REPORTS.dump_python(reports, mode="json")}
    with answer:
        json.dump(content, answer)
    return 1 if "error" in content else 0


def check_reachable(ray_address: str) -> None:
    """Raise `StartupError` if nothing listens at HOST:PORT. Ray would try for two minutes."""
    host, _, port = ray_address.rpartition(":")
    if not host or not port.isdecimal():
        raise StartupError(f"cluster.ray_address must be HOST:PORT, not {ray_address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except OSError as error:
        raise StartupError(
            f"cluster.ray_address {ray_address}: nothing answers there ({error}); is Ray running? "
            "see `ray start` in docs/several_machines.md"
        ) from None


if __name__ == "__main__":
    status = main(sys.argv[1], sys.argv[2:])
    sys.stdout.flush()
    # An orderly exit would wait for Ray's threads.
    os._exit(status)
