"""What `sgl-omni serve` prints: who it is at once, and what to do with it once it is ready."""

import ipaddress
import json
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from sglang_omni.config.options import Config
from sglang_omni.engines.runtime.gpus import list_visible_gpus
from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.speech.contract import TalkerInfo
from sglang_omni.engines.thinker.contract import ThinkerInfo
from sglang_omni.entrypoints.cli.checkpoint import MING_MINI
from sglang_omni.entrypoints.http.middleware.hosts import is_loopback
from sglang_omni.serving.engine_config import resolve_device
from sglang_omni.version import package_version


def show(text: str) -> None:
    """Print it at once; a terminal that lacks a character gets a question mark."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), flush=True)


def header(checkpoint: Path, device: str) -> str:
    """Return the first line: version, model and what it runs on."""
    model = "Ming-mini (bundled demo)" if checkpoint == MING_MINI else checkpoint.name
    return f"sglang-omni {package_version()} · {model} · {hardware(device)}"


def hardware(device: str) -> str:
    """Return the cards by name and number, or "CPU"."""
    if resolve_device(device) == "cpu":
        return "CPU"
    names = Counter(card.name for card in list_visible_gpus())
    return ", ".join(f"{number} x {name}" for name, number in names.items()) or "CUDA"


def ready_lines(
    config: Config,
    address: str,
    processes: Mapping[str, EngineProcess],
    prompts: Sequence[str] = (),
) -> str:
    """Return what to open, ask, paste and know, a line for each.

    `address` is where it listens, without a path; `prompts` are questions that the checkpoint can
    answer.
    """
    lines = {
        "Open": f"{address}/",
        "Try": f'"{prompts[0]}"' if prompts else "",
        "Hear": speech_command(config, address),
        "API": f"{address}/v1 · docs /docs · metrics /metrics",
        "Limits": " · ".join([*_limits(processes), _access(config)]),
        "Logs": str(config.log_folder or ""),
        "Stop": "Ctrl-C",
    }
    return "\n".join(f"{name:8}{text}" for name, text in lines.items() if text)


def speech_command(config: Config, address: str) -> str:
    """Return a command to paste that writes speech into a file."""
    key = "-H 'Authorization: Bearer KEY' " if config.api_key else ""
    body = json.dumps({"model": config.served_model_name, "input": "Hello from Ming."})
    return (
        f"curl -s {key}{address}/v1/audio/speech -H 'Content-Type: application/json' "
        f"-d {shlex.quote(body)} -o hello.wav"
    )


def public_address(config: Config, host: str, port: int) -> str:
    """Return the URL at which this machine reaches a socket bound to `host` and `port`."""
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    scheme = "https" if config.tls_certificate else "http"
    return f"{scheme}://{f'[{address}]' if address.version == 6 else address}:{port}"


def _limits(processes: Mapping[str, EngineProcess]) -> list[str]:
    """How many chats and voices there are at once, of all replicas that have started."""
    infos = [process.health.info for process in processes.values()]
    chats = sum(info.max_running_requests for info in infos if isinstance(info, ThinkerInfo))
    voices = sum(info.slots for info in infos if isinstance(info, TalkerInfo))
    counts = ((chats, "chats"), (voices, "voices"))
    return [f"{number} {what}" for number, what in counts if number]


def _access(config: Config) -> str:
    if config.api_key:
        return "API key required"
    if is_loopback(config.host):
        return "no API key (this machine only)"
    return f"no API key (anyone who reaches {config.host})"
