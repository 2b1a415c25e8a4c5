"""Formats what `sgl-omni serve` prints at its start, and when it is ready."""

import ipaddress
import json
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.gpus import list_visible_gpus
from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.speech.contract import TalkerInfo
from sglang_omni.engines.thinker.contract import ThinkerInfo
from sglang_omni.entrypoints.http.middleware.hosts import is_loopback
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.serving.engine_config import resolve_device
from sglang_omni.version import package_version


def print_text(text: str) -> None:
    """Print text and flush; replace characters that the terminal cannot encode by "?"."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), flush=True)


def format_header(checkpoint: Path, device: str) -> str:
    """Return the first line: version, model and hardware."""
    model = "Ming-mini (bundled demo)" if checkpoint == MING_MINI else checkpoint.name
    return f"sglang-omni {package_version()} · {model} · {describe_hardware(device)}"


def describe_hardware(device: str) -> str:
    """Return the number and name of the GPUs, or "CPU"."""
    if resolve_device(device) == "cpu":
        return "CPU"
    counts = Counter(gpu.name for gpu in list_visible_gpus())
    return ", ".join(f"{count} x {name}" for name, count in counts.items()) or "CUDA"


def format_startup_banner(
    config: Config,
    url: str,
    processes: Mapping[str, EngineProcess],
    prompts: Sequence[str] = (),
    longest_start: str = "",
) -> str:
    """Return the lines for a server that is ready: its URLs, an example, limits and logs.

    Args:
        config: Configuration of the server.
        url: URL of the server without a path.
        processes: Engine processes by name.
        prompts: Example questions that the checkpoint can answer.
        longest_start: The phases of the start that took the longest.
    """
    lines = {
        "Start": longest_start,
        "Open": f"{url}/",
        "Try": f'"{prompts[0]}"' if prompts else "",
        "Hear": format_speech_command(config, url),
        "API": f"{url}/v1 · docs /docs · metrics /metrics",
        "Limits": " · ".join([*_describe_limits(processes), _describe_access(config)]),
        "Logs": str(config.log_folder or ""),
        "Stop": "Ctrl-C",
    }
    return "\n".join(f"{name:8}{text}" for name, text in lines.items() if text)


def format_speech_command(config: Config, url: str) -> str:
    """Return a shell command that writes speech to a file."""
    key = "-H 'Authorization: Bearer KEY' " if config.api_key else ""
    body = json.dumps({"model": config.served_model_name[0], "input": "Hello, how are you?"})
    return (
        f"curl -s {key}{url}/v1/audio/speech -H 'Content-Type: application/json' "
        f"-d {shlex.quote(body)} -o hello.wav"
    )


def get_public_url(config: Config, host: str, port: int) -> str:
    """Return the URL for this machine of a socket bound to `host` and `port`."""
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    scheme = "https" if config.tls_certificate else "http"
    return f"{scheme}://{f'[{address}]' if address.version == 6 else address}:{port}"


def _describe_limits(processes: Mapping[str, EngineProcess]) -> list[str]:
    """Return the number of concurrent chats and voices of all replicas that have started."""
    infos = [process.health.info for process in processes.values()]
    num_chats = sum(info.max_running_requests for info in infos if isinstance(info, ThinkerInfo))
    num_voices = sum(info.slots for info in infos if isinstance(info, TalkerInfo))
    counts = ((num_chats, "chats"), (num_voices, "voices"))
    return [f"{count} {unit}" for count, unit in counts if count]


def _describe_access(config: Config) -> str:
    if config.api_key:
        return "API key required"
    if is_loopback(config.host):
        return "no API key (this machine only)"
    return f"no API key (anyone who reaches {config.host})"
