"""Implements `sgl-omni doctor`: checks a machine and a configuration before anything is loaded."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.gpus import list_visible_gpus
from sglang_omni.entrypoints.cli.access import build_tls_options, read_access
from sglang_omni.entrypoints.cli.serve import bind_socket
from sglang_omni.entrypoints.cli.startup_banner import print_text
from sglang_omni.entrypoints.startup.checkpoint import find_checkpoint
from sglang_omni.entrypoints.startup.machine_checks import (
    SHARED_MEMORY,
    Check,
    Outcome,
    check_gpus,
    check_home,
    check_memory,
    check_open_files,
    check_packages,
    check_python,
    check_shared_memory,
    check_temporary_folder,
    find_versions,
    list_requirements,
    read_memory,
)
from sglang_omni.entrypoints.startup.placement import apply_placement
from sglang_omni.entrypoints.startup.preflight_checks import check_config, choose_voice
from sglang_omni.models.registry import family_of
from sglang_omni.models.weights import map_shards
from sglang_omni.protocol.errors import OmniError

MARKS: dict[Outcome, str] = {"ok": "✓", "warning": "!", "problem": "✗"}
MEMORY_INFO = Path("/proc/meminfo")


def doctor(config: Config, *, as_json: bool) -> int:
    """Print what was found, and what to do. Return 1 if the server could not start, else 0."""
    checks = list(run_checks(config))
    if as_json:
        print(json.dumps([asdict(check) for check in checks], ensure_ascii=False, indent=1))
    else:
        for check in checks:
            print_text(f"{MARKS[check.outcome]} {check.name:17}{check.text}")
            if check.advice:
                print_text(f"  {'':17}→ {check.advice}")
    return int(any(check.outcome == "problem" for check in checks))


def run_checks(config: Config) -> Iterator[Check]:
    """Yield the findings, those of the machine first."""
    gpus = list_visible_gpus()
    yield check_python()
    requirements = list_requirements()
    yield check_packages(requirements, find_versions(one.name for one in requirements))
    yield check_gpus(gpus, config.device)
    yield check_memory(*read_memory(MEMORY_INFO.read_text()))
    yield check_shared_memory(SHARED_MEMORY, bool(gpus) and config.device != "cpu")
    yield check_temporary_folder()
    yield check_home()
    yield check_open_files()
    yield _try("options", "as they can be used", lambda: _check_options(config))
    yield _try("port", f"{config.host}:{config.port} is free", lambda: _check_port(config))
    yield from _check_checkpoint(config)


def _try(name: str, text: str, check: Callable[[], object]) -> Check:
    """Return that something is fine, or the error that it ends with."""
    try:
        check()
    except OmniError as error:
        return Check(name, "problem", error.message)
    return Check(name, "ok", text)


def _check_options(config: Config) -> None:
    check_config(config)
    read_access(config)
    build_tls_options(config)


def _check_port(config: Config) -> None:
    bind_socket(config.host, config.port).close()


def _check_checkpoint(config: Config) -> Iterator[Check]:
    """Yield whether the checkpoint is complete, has the voice, and fits the GPUs."""
    try:
        checkpoint = find_checkpoint(config.model_path)
        family = family_of(checkpoint)
        # Shards that the index lists and the folder lacks are found without loading them.
        map_shards(checkpoint)
    except OmniError as error:
        yield Check("checkpoint", "problem", error.message)
        return
    yield Check("checkpoint", "ok", f"{checkpoint.name}, complete")
    voices = family.voice_names(checkpoint)
    if voices:
        chosen = f"{len(voices)} presets, {config.voice or voices[0]} unless a request names one"
        yield _try("voices", chosen, lambda: choose_voice(config.voice, voices))
    yield _try("placement", "fits", lambda: apply_placement(config, checkpoint))
