"""From thinker settings to SGLang's server arguments and process environment. Pure functions."""

import importlib.util
import json
from pathlib import Path
from typing import Any

from sglang_omni.engines.runtime.gpus import VISIBLE_DEVICES_VARIABLE, visible_devices
from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.protocol.errors import ConfigError

# What the plug-in registers, see `thinker/grammar_backend.py`.
GRAMMAR_BACKEND = "guarded_llguidance"
# The KV budget without a GPU, where SGLang cannot measure free memory sensibly.
CPU_TOTAL_TOKENS = 16_384
CPU_RUNNING_REQUESTS = 16
# Tokens of prefills that are replayed from CUDA graphs; longer ones keep a card busy for longer
# than their launches take. Rows up to the next size are computed in vain: sizes lie close.
CAPTURED_PREFILLS = (*range(16, 128, 16), *range(128, 256, 32), *range(256, 1281, 64))


def environment(settings: ThinkerSettings, threads: int, mask: str | None = None) -> dict[str, str]:
    """Variables that must be set before sglang is imported. `threads` is per process, `mask` the
    server's own `CUDA_VISIBLE_DEVICES`. Raises `ConfigError` for a card that is not there."""
    variables = {"SGLANG_DISABLED_MODEL_ARCHS": ",".join(_stock_models())}
    if settings.device == "cpu":
        variables |= _cpu_environment(settings, threads)
        return variables
    if settings.gpus:
        variables[VISIBLE_DEVICES_VARIABLE] = visible_devices(settings.gpus, mask)
    if settings.tp_size > 1:
        # Other engines may share one of its cards, and take their memory while it starts.
        variables["SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK"] = "false"
    return variables


def _stock_models() -> list[str]:
    """Names of SGLang's own model modules: we bring the one we serve, and importing two hundred
    others takes seconds in every process. SGLang itself is not imported to list them."""
    found = importlib.util.find_spec("sglang")
    assert found is not None and found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0]) / "srt" / "models"
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def _cpu_environment(settings: ThinkerSettings, threads: int) -> dict[str, str]:
    variables = {
        "SGLANG_USE_CPU_ENGINE": "1",
        # Compiling would cost 20 s at start and gain nothing on a tiny model.
        "TORCHDYNAMO_DISABLE": "1",
        "OMP_NUM_THREADS": str(threads),
    }
    if settings.tp_size > 1:
        variables["SGLANG_CPU_OMP_THREADS_BIND"] = "|".join(map(str, range(settings.tp_size)))
        # A CUDA build of torch would otherwise load NCCL for the tensor-parallel group.
        variables["SGLANG_NCCL_SO_PATH"] = "/nonexistent"
    return variables


def server_arguments(settings: ThinkerSettings, port: int) -> dict[str, Any]:
    """Arguments of `sglang.Engine`, whose ranks meet at `port`.

    Raises `ConfigError` for a combination it cannot run.
    """
    if settings.deterministic and settings.device == "cpu":
        raise ConfigError("deterministic sampling needs a GPU: SGLang refuses it on the CPU")
    arguments: dict[str, Any] = {
        "model_path": str(settings.checkpoint),
        "device": settings.device,
        "dtype": settings.dtype,
        "tp_size": settings.tp_size,
        "context_length": settings.context_length,
        "max_total_tokens": settings.max_total_tokens,
        "max_running_requests": settings.max_running_requests,
        "mem_fraction_static": settings.mem_fraction_static,
        "disable_radix_cache": not settings.radix_cache,
        "enable_deterministic_inference": settings.deterministic,
        # The pipeline detokenises by itself, from the new ids of each output.
        "incremental_streaming_output": True,
        # Features come from the encoder engines; the model builds no encoders of its own.
        "json_model_override_args": json.dumps({"ming_encoders": "external"}),
        # A model that may put any white space into JSON may go on with it for ever.
        "constrained_json_disable_any_whitespace": True,
        # The grammars of calls are in its language; SGLang's usual one, xgrammar, needs a card.
        "grammar_backend": GRAMMAR_BACKEND,
        "nccl_port": port,
        "log_level": "warning",
        "enable_metrics": True,
    }
    if settings.device == "cpu":
        arguments |= _cpu_defaults(settings)
    arguments |= _prefill_graphs(settings) | dict(settings.server_args)
    if arguments.get("ep_size", 1) != 1:
        raise ConfigError("ep_size: every rank would add the shared expert; use tp_size")
    return {name: value for name, value in arguments.items() if value is not None}


def _prefill_graphs(settings: ThinkerSettings) -> dict[str, Any]:
    """Which prefills SGLang captures, unless it is told otherwise.

    None where answers must not depend on the company, since kernels for more rows round
    differently, and none over several cards, where it has not been measured.
    """
    asked = dict(settings.server_args)
    off = asked.get("disable_cuda_graph") or asked.get("disable_prefill_cuda_graph")
    one_card = settings.device == "cuda" and settings.tp_size == 1
    wanted = one_card and not settings.deterministic and not off
    return {
        "cuda_graph_backend_prefill": "breakable" if wanted else "disabled",
        "cuda_graph_bs_prefill": list(CAPTURED_PREFILLS),
    }


def _cpu_defaults(settings: ThinkerSettings) -> dict[str, Any]:
    return {
        "attention_backend": "torch_native",
        # An idle scheduler otherwise spins, and takes a core from the talker.
        "sleep_on_idle": True,
        "max_total_tokens": settings.max_total_tokens or CPU_TOTAL_TOKENS,
        "max_running_requests": settings.max_running_requests or CPU_RUNNING_REQUESTS,
        # Unused with an explicit token budget, but SGLang measures a GPU when it is absent.
        "mem_fraction_static": settings.mem_fraction_static or 0.5,
    }
