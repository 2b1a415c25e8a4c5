"""What gateways want to know of the server, in SGLang's form. Nothing in it is secret.

Where SGLang names a path, the served name stands: clients learn nothing of the file system.
"""

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.version import package_version

Json = dict[str, Any]
Engines = Mapping[str, Mapping[str, Any]]


def iterate_thinkers(engines: Engines) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the number and the state of each replica of the thinker."""
    for name, engine in engines.items():
        if engine.get("kind", name) == "thinker":
            yield engine.get("replica", 0), engine


def build_loads(engines: Engines) -> list[Json]:
    """Return the load of each replica of the thinker, which SGLang calls a DP rank.

    Requests in the admission queue, which is in front of all replicas, count as waiting of the
    first one. A figure is 0 until the replica has reported it.
    """
    return [_build_load(rank, engine) for rank, engine in iterate_thinkers(engines)]


def _build_load(rank: int, engine: Mapping[str, Any]) -> Json:
    counters, info = engine.get("counters") or {}, engine.get("info") or {}
    num_running = int(counters.get("running", 0))
    num_waiting = int(counters.get("waiting", 0) + counters.get("queued", 0))
    num_used, capacity = (
        int(counters.get(name, 0)) for name in ("kv_tokens_used", "kv_tokens_capacity")
    )
    max_running = int(info.get("max_running_requests", 0))
    return {
        "dp_rank": rank,
        "num_running_reqs": num_running,
        "num_waiting_reqs": num_waiting,
        "num_waiting_uncached_tokens": int(counters.get("waiting_tokens", 0)),
        "num_total_reqs": num_running + num_waiting,
        "num_used_tokens": num_used,
        "num_total_tokens": int(counters.get("kv_tokens_requested", 0)),
        "max_total_num_tokens": capacity,
        "max_running_requests": max_running,
        "token_usage": num_used / capacity if capacity else 0.0,
        "gen_throughput": float(counters.get("tokens_per_second", 0)),
        "cache_hit_rate": float(counters.get("cache_hit_rate", 0)),
        "utilization": num_running / max_running if max_running else 0.0,
    }


def build_legacy_load(load: Json, now_s: float) -> Json:
    """Return a load in the form of SGLang's former route."""
    return {
        "dp_rank": load["dp_rank"],
        "num_reqs": load["num_total_reqs"],
        "num_waiting_reqs": load["num_waiting_reqs"],
        "num_tokens": load["num_total_tokens"],
        "num_pending_tokens": load["num_total_tokens"] - load["num_used_tokens"],
        "ts_tic": now_s,
    }


def build_model_info(backend: Backend) -> Json:
    """Return SGLang's description of the model."""
    return {
        "model_path": backend.model,
        "tokenizer_path": backend.model,
        "served_model_name": backend.model,
        "is_generation": True,
        "preferred_sampling_params": None,
        "has_image_understanding": backend.accepts_media,
        "has_audio_understanding": backend.accepts_media,
        "capabilities": backend.capabilities.public(),
    }


def build_server_info(backend: Backend) -> Json:
    """Return SGLang's description of the server: the model, versions, limits and the load.

    Raises `EngineUnavailable` until the thinker has started.
    """
    loads = build_loads(backend.engines())
    return {
        "model_path": backend.model,
        "tokenizer_path": backend.model,
        "served_model_name": backend.model,
        "version": package_version(),
        "sglang_version": version("sglang"),
        "context_length": backend.context_length,
        "max_total_num_tokens": sum(load["max_total_num_tokens"] for load in loads),
        "max_running_requests": sum(load["max_running_requests"] for load in loads),
        "max_new_tokens": backend.max_tokens,
        "max_body_bytes": backend.max_body_bytes,
        "dp_size": max(len(loads), 1),
        "sample_rate": backend.sample_rate,
        "voices": [*backend.voices],
        "internal_states": loads,
    }
