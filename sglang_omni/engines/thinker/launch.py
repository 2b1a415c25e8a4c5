"""SGLang's server arguments and process environment from thinker settings. Pure functions."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sglang_omni.engines.runtime.gpus import VISIBLE_DEVICES_VARIABLE, visible_devices
from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.kv_cache import check_kv_cache
from sglang_omni.engines.thinker.parallelism import check_parallelism
from sglang_omni.protocol.errors import ConfigError

# The plug-in registers it; see `grammar_backend.py`.
GRAMMAR_BACKEND = "guarded_llguidance"
# The KV budget without a GPU, where SGLang cannot measure free memory sensibly.
CPU_MAX_TOTAL_TOKENS = 16_384
CPU_MAX_RUNNING_REQUESTS = 16
# Tokens of a prompt whose logits are computed at once, if their log probabilities are asked for.
LOGITS_CHUNK_TOKENS = 512
# Numbers of tokens for which a prefill CUDA graph is captured. Longer prefills take longer on the
# GPU than their kernel launches. A batch is padded to the next size, so sizes are close.
PREFILL_GRAPH_SIZES = (*range(16, 128, 16), *range(128, 256, 32), *range(256, 1281, 64))


def build_environment(
    settings: ThinkerSettings, threads: int, mask: str | None = None
) -> dict[str, str]:
    """Return the environment variables that must be set before sglang is imported.

    Args:
        settings: The thinker's settings.
        threads: CPU threads per process.
        mask: The server's own `CUDA_VISIBLE_DEVICES`; None if it is not set.

    Raises:
        ConfigError: A GPU of the settings does not exist, or SGLang does not support them.
    """
    check_parallelism(settings)
    check_kv_cache(settings)
    variables = {
        "SGLANG_DISABLED_MODEL_ARCHS": ",".join(_list_stock_models()),
        # Log probabilities of a long prompt would take gigabytes for the logits of all its tokens.
        "SGLANG_ENABLE_LOGITS_PROCESSER_CHUNK": "true",
        "SGLANG_LOGITS_PROCESSER_CHUNK_SIZE": str(LOGITS_CHUNK_TOKENS),
    }
    if settings.device == "cpu":
        variables |= _build_cpu_environment(settings, threads)
        return variables
    if settings.gpus:
        variables[VISIBLE_DEVICES_VARIABLE] = visible_devices(settings.gpus, mask)
    if settings.tp_size > 1:
        # Other engines may share one of its GPUs and allocate memory during its start.
        variables["SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK"] = "false"
    return variables


def _list_stock_models() -> list[str]:
    """Return the names of SGLang's own model modules, without importing SGLang.

    They are disabled: our plug-in brings the served model, and importing two hundred others takes
    seconds in every process.
    """
    spec = importlib.util.find_spec("sglang")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "srt" / "models"
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def _build_cpu_environment(settings: ThinkerSettings, threads: int) -> dict[str, str]:
    variables = {
        "SGLANG_USE_CPU_ENGINE": "1",
        # Compiling would take 20 s at start and does not help a tiny model.
        "TORCHDYNAMO_DISABLE": "1",
        "OMP_NUM_THREADS": str(threads),
    }
    if settings.tp_size > 1:
        variables["SGLANG_CPU_OMP_THREADS_BIND"] = "|".join(map(str, range(settings.tp_size)))
        # A CUDA build of torch would otherwise load NCCL for the tensor-parallel group.
        variables["SGLANG_NCCL_SO_PATH"] = "/nonexistent"
    return variables


def build_server_args(
    settings: ThinkerSettings, port: int, model_args: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the arguments of `sglang.Engine`, whose ranks use `port` for their rendezvous.

    Raises:
        ConfigError: The settings cannot be combined.
    """
    check_parallelism(settings)
    check_kv_cache(settings)
    if settings.deterministic and settings.device == "cpu":
        raise ConfigError("deterministic sampling needs a GPU; SGLang does not support it on a CPU")
    arguments: dict[str, Any] = {
        "model_path": str(settings.checkpoint),
        "device": settings.device,
        "dtype": settings.dtype,
        "tp_size": settings.tp_size,
        "ep_size": settings.ep_size,
        "context_length": settings.context_length,
        "max_total_tokens": settings.max_total_tokens,
        "max_running_requests": settings.max_running_requests,
        "mem_fraction_static": settings.mem_fraction_static,
        "kv_cache_dtype": settings.kv_cache_dtype,
        "disable_radix_cache": not settings.radix_cache,
        "enable_deterministic_inference": settings.deterministic,
        # The pipeline detokenizes the new ids of each output itself.
        "incremental_streaming_output": True,
        **(model_args or {}),
        # With arbitrary whitespace in JSON, a model may generate it endlessly.
        "constrained_json_disable_any_whitespace": True,
        # Tool-call grammars use llguidance's syntax. SGLang's default, xgrammar, needs a GPU.
        "grammar_backend": GRAMMAR_BACKEND,
        "nccl_port": port,
        "log_level": "warning",
        "enable_metrics": True,
    }
    if settings.nodes > 1:
        arguments |= {
            "nnodes": settings.nodes,
            "node_rank": settings.node_rank,
            "dist_init_addr": settings.dist_init_addr,
        }
    if settings.device == "cpu":
        arguments |= _build_cpu_args(settings)
    arguments |= _build_prefill_graph_args(settings) | dict(settings.server_args)
    return {name: value for name, value in arguments.items() if value is not None}


def _build_prefill_graph_args(settings: ThinkerSettings) -> dict[str, Any]:
    """Return which prefills SGLang captures in CUDA graphs, unless `server_args` override it.

    None are captured if answers must not depend on other requests in the batch, because kernels for
    padded batches round differently, and none on several GPUs, where it has not been measured.
    """
    overrides = dict(settings.server_args)
    is_disabled = overrides.get("disable_cuda_graph") or overrides.get("disable_prefill_cuda_graph")
    is_single_gpu = settings.device == "cuda" and settings.tp_size == 1
    is_enabled = is_single_gpu and not settings.deterministic and not is_disabled
    return {
        "cuda_graph_backend_prefill": "breakable" if is_enabled else "disabled",
        "cuda_graph_bs_prefill": list(PREFILL_GRAPH_SIZES),
    }


def _build_cpu_args(settings: ThinkerSettings) -> dict[str, Any]:
    return {
        "attention_backend": "torch_native",
        # Otherwise an idle scheduler busy-waits and takes a core from the talker.
        "sleep_on_idle": True,
        "max_total_tokens": settings.max_total_tokens or CPU_MAX_TOTAL_TOKENS,
        "max_running_requests": settings.max_running_requests or CPU_MAX_RUNNING_REQUESTS,
        # Unused with an explicit token budget, but without it SGLang measures a GPU.
        "mem_fraction_static": settings.mem_fraction_static or 0.5,
    }
