"""The thinker's worker: an unmodified `sglang.Engine` as a `StreamWorker`.

This module imports sglang, so only the thinker's own process may import it.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import nullcontext
from dataclasses import replace
from multiprocessing import connection
from typing import Any

from sglang import Engine
from sglang.srt.managers.io_struct import GenerateReqInput, ProfileReq

from sglang_omni.engines.runtime.gpus import list_visible_gpus
from sglang_omni.engines.runtime.local_address import find_interface, find_local_address
from sglang_omni.engines.runtime.ports import find_rendezvous_port
from sglang_omni.engines.runtime.process_state import is_stopped
from sglang_omni.engines.thinker.contract import (
    Features,
    ThinkerInfo,
    ThinkerOutput,
    ThinkerRequest,
    ThinkerSettings,
)
from sglang_omni.engines.thinker.forked_engine import ForkedEngine
from sglang_omni.engines.thinker.launch import GRAMMAR_BACKEND, build_server_args
from sglang_omni.engines.thinker.metric_files import open_metric_files
from sglang_omni.engines.thinker.moe_configs import CONFIG_DIR_VARIABLE, build_moe_environment
from sglang_omni.engines.thinker.parallelism import get_ep_size
from sglang_omni.engines.thinker.sglang_output import (
    find_field,
    to_output,
    to_prompt_logprobs,
    to_query_states,
)
from sglang_omni.engines.thinker.shared_features import SharedFeatureRef
from sglang_omni.engines.thinker.start_reports import relay_reports
from sglang_omni.engines.thinker.warm_up import warm_up
from sglang_omni.models.json_file import read_json
from sglang_omni.models.registry import family_of
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.system.progress import report_progress
from sglang_omni.system.timer_slack import relaxed_timers

LOGGER = logging.getLogger(__name__)

# How often to look for processes that SGLang has started, and whether one is stopped, in seconds:
# during the start and later. The end of a process is noticed at once.
START_POLL_S, READY_POLL_S = 0.1, 0.5
# How long a process may be stopped. SGLang itself checks only whether its schedulers are alive.
MAX_STOPPED_S = 3.0


def open_worker(settings: ThinkerSettings) -> "ThinkerWorker":
    """Load the thinker and warm it up."""
    closing = threading.Event()
    engine = start_engine(settings, closing)
    info = _read_info(engine)
    # On a CPU there is nothing to compile.
    prompts = settings.device == "cuda" and settings.warm_up_prompts
    warm_up(engine, info, engine.server_args.chunked_prefill_size or -1, prompts=prompts)
    restore_sigterm()
    return ThinkerWorker(engine, info, settings.deterministic, closing)


def start_engine(settings: ThinkerSettings, closing: threading.Event) -> Engine:
    """Start SGLang's processes of this machine. Set `closing` before they may end."""
    report_progress("starting SGLang")
    started = threading.Event()
    threading.Thread(target=watch_processes, args=(closing, started), daemon=True).start()
    _set_moe_configs(settings)
    if settings.dist_init_addr is not None:
        set_interface(settings.dist_init_addr)
    # The schedulers restore exact timers once their process groups exist. On a GPU the schedulers
    # and the threads of NCCL busy-wait instead; relaxed timers have not been measured there.
    timers = relaxed_timers() if settings.device == "cpu" else nullcontext()
    with timers, relay_reports():
        model_args = family_of(settings.checkpoint).sglang_args()
        # On a GPU SGLang initializes CUDA in this process, to ask for the card's capabilities.
        engine_class = ForkedEngine if settings.device == "cpu" else Engine
        engine = engine_class(**build_server_args(settings, find_rendezvous_port(), model_args))
    started.set()
    return engine


def set_interface(dist_init_addr: str) -> None:
    """Let ranks speak to other machines over the interface that leads to where they meet.

    Otherwise gloo would tell the others the loopback address, and SGLang the one towards the
    internet. Variables that are set are kept.
    """
    host = dist_init_addr.rpartition(":")[0].strip("[]")
    interface = find_interface(host)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    os.environ.setdefault("NCCL_SOCKET_IFNAME", interface)
    os.environ.setdefault("SGLANG_HOST_IP", find_local_address(host, None))


def _set_moe_configs(settings: ThinkerSettings) -> None:
    """Let SGLang find kernel configurations tuned for this GPU, unless the user set a folder."""
    if settings.device == "cuda" and CONFIG_DIR_VARIABLE not in os.environ:
        # This process sees only its own GPUs.
        gpu_name = list_visible_gpus()[0].name
        config = read_json(settings.checkpoint / "config.json")
        os.environ |= build_moe_environment(
            config, gpu_name, settings.tp_size, ep_size=get_ep_size(settings)
        )


def watch_processes(closing: threading.Event, started: threading.Event) -> None:
    """End this process as soon as a process of SGLang has ended or is stopped for too long.

    SGLang checks its processes itself, but needs five seconds to detect a lost one, and during its
    start it waits for a rank that will never answer. Meanwhile its event loop, which is ours, may
    block while sending to a scheduler that is gone.

    Args:
        closing: Set when SGLang's processes may end.
        started: Set once SGLang has started all of its processes.
    """
    processes: set[Any] = set()
    running_at: dict[Any, float] = {}
    while not closing.is_set():
        processes |= set(multiprocessing.active_children())
        poll_s = READY_POLL_S if started.is_set() else START_POLL_S
        connection.wait([process.sentinel for process in processes], timeout=poll_s)
        now = time.monotonic()
        for process in processes:
            if process not in running_at or not is_stopped(process.pid):
                running_at[process] = now
        lost = [
            process.name
            for process in processes
            if not process.is_alive() or now - running_at[process] > MAX_STOPPED_S
        ]
        if not processes:
            closing.wait(START_POLL_S)
        elif lost and not closing.is_set():
            LOGGER.error("SGLang's process %s ended or is stopped", ", ".join(lost))
            # The orphan reaper kills the other processes. An orderly exit would wait for them.
            os._exit(1)


def restore_sigterm() -> None:
    """Remove SGLang's SIGTERM handler, because the server drains requests itself.

    With the handler, SGLang would accept requests for seconds more and then fail them, while the
    server considers it healthy.
    """
    asyncio.get_event_loop().remove_signal_handler(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _read_info(engine: Engine) -> ThinkerInfo:
    server = engine.get_server_info()
    held = server["internal_states"][0]["memory_usage"]
    LOGGER.info(
        "thinker: a rank holds %.2f GiB of weights, %.2f of KV cache and %.2f of graphs",
        *(held[part] for part in ("weight", "kvcache", "graph")),
    )
    return ThinkerInfo(
        # Less than the model's context if the KV budget is smaller. SGLang also keeps a reserve.
        context_length=engine.tokenizer_manager.max_req_input_len,
        max_total_tokens=server["max_total_num_tokens"],
        max_running_requests=server["max_running_requests"],
        supports_json_schema=engine.server_args.grammar_backend != "none",
        supports_grammar=engine.server_args.grammar_backend in (GRAMMAR_BACKEND, "llguidance"),
    )


class ThinkerWorker:
    """Streams tokens from one SGLang engine; SGLang batches."""

    def __init__(
        self, engine: Engine, info: ThinkerInfo, deterministic: bool, closing: threading.Event
    ) -> None:
        """Wrap a warm engine. `close` sets `closing` before SGLang's processes end."""
        self.info = info
        self._engine = engine
        self._deterministic = deterministic
        self._aborted = 0
        self._closing = closing
        self._metric_files = open_metric_files()
        self._metric_files.reserve()

    async def run(
        self, request_id: str, request: ThinkerRequest
    ) -> AsyncGenerator[ThinkerOutput, None]:
        """Yield new tokens until the request ends. Closing the generator frees its KV cache."""
        finished, prompt_logprobs = False, request.sampling.prompt_logprobs
        wants_states = request.query is not None
        try:
            # As `Engine.async_generate` builds it, which has no argument `extra_key`.
            generate_request = GenerateReqInput(
                input_ids=list(request.input_ids),
                sampling_params=self._sampling(request.sampling),
                image_data=_list_media_items(request) or None,
                extra_key=request.tenant,
                stream=True,
                rid=request_id,
                return_logprob=request.sampling.top_logprobs is not None,
                top_logprobs_num=request.sampling.top_logprobs or 0,
                # From the first token on, or of the answer alone.
                logprob_start_len=0 if request.sampling.prompt_logprobs else -1,
            )
            manager = self._engine.tokenizer_manager
            async for raw in manager.generate_request(generate_request, None):
                output = to_output(raw, request.sampling)
                finished = output.last
                if prompt_logprobs:
                    # SGLang repeats those of the prompt with every output.
                    output = replace(output, prompt_logprobs=to_prompt_logprobs(raw["meta_info"]))
                    prompt_logprobs = False
                if wants_states:
                    output = replace(output, query_states=to_query_states(raw["meta_info"]))
                    wants_states = False
                yield output
        except ValueError as error:
            # SGLang validates lengths and parameters before it schedules the request.
            field = find_field(str(error), request.sampling)
            raise InvalidRequest(str(error), param=field) from error
        finally:
            if not finished:
                # Closing SGLang's generator does not abort the request.
                self._aborted += 1
                self._engine.tokenizer_manager.abort_request(request_id)

    async def counters(self) -> dict[str, float]:
        """Return the scheduler load. The round trip to every scheduler is the liveness probe."""
        self._metric_files.reserve()
        manager = self._engine.tokenizer_manager
        await manager.get_internal_state()
        load = manager.load_snapshot_reader.read(0)
        if load is None:
            return {"aborted": self._aborted}
        return {
            "running": load.num_running_reqs,
            "waiting": load.num_waiting_reqs,
            "kv_tokens_used": load.num_used_tokens,
            "kv_tokens_capacity": load.max_total_num_tokens,
            # With what waiting requests will need.
            "kv_tokens_requested": load.num_total_tokens,
            "waiting_tokens": load.num_waiting_uncached_tokens,
            "tokens_per_second": load.gen_throughput,
            "cache_hit_rate": load.cache_hit_rate,
            "aborted": self._aborted,
        }

    async def profile(self, folder: str | None) -> None:
        """Start SGLang's profiler in every scheduler; with None, stop it and write the traces."""
        manager = self._engine.tokenizer_manager
        if folder is None:
            await manager.stop_profile()
        else:
            await manager.start_profile(ProfileReq(output_dir=folder, activities=["CPU", "GPU"]))

    async def close(self) -> None:
        """Stop SGLang's processes."""
        self._closing.set()
        self._engine.shutdown()

    def _sampling(self, sampling: SamplingParams) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "max_new_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "min_p": sampling.min_p,
            "repetition_penalty": sampling.repetition_penalty,
            "frequency_penalty": sampling.frequency_penalty,
            "presence_penalty": sampling.presence_penalty,
            "stop": list(sampling.stop),
        }
        if sampling.logit_bias:
            parameters["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias}
        if sampling.json_schema is not None:
            parameters["json_schema"] = sampling.json_schema
        if sampling.grammar is not None:
            # llguidance distinguishes Lark from EBNF by the text's beginning.
            parameters["ebnf"] = sampling.grammar.lark
        if self._deterministic and sampling.seed is not None:
            parameters["sampling_seed"] = sampling.seed
        return parameters


def _list_media_items(request: ThinkerRequest) -> list[dict[str, Any]]:
    items = [_to_media_item(features) for features in request.features]
    if request.query is not None:
        # The owner of the memory holds it until the request has ended.
        items.append(_to_media_item(request.query.embeddings) | {"states": request.query.states})
    return items


def _to_media_item(features: Features) -> dict[str, Any]:
    return {
        "modality": features.modality,
        # SGLang keeps the request until its schedulers have answered or confirmed the abort. By
        # then they have mapped the rows.
        "feature": SharedFeatureRef(features),
        "offsets": list(features.offsets),
        "grid": list(features.grid),
        "hash": features.content_hash,
    }
