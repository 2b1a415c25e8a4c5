"""The thinker's worker: stock `sglang.Engine` behind the engine contract.

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
from http import HTTPStatus
from multiprocessing import connection
from typing import Any

from sglang import Engine
from sglang.srt.managers.io_struct import GenerateReqInput, ProfileReq

from sglang_omni.engines.runtime.gpus import list_visible_gpus
from sglang_omni.engines.runtime.ports import find_rendezvous_port
from sglang_omni.engines.runtime.process_state import is_stopped
from sglang_omni.engines.runtime.timer_slack import relaxed_timers
from sglang_omni.engines.runtime.worker import report_progress
from sglang_omni.engines.thinker.contract import (
    Features,
    SamplingParams,
    ThinkerInfo,
    ThinkerOutput,
    ThinkerRequest,
    ThinkerSettings,
    TokenLogprob,
)
from sglang_omni.engines.thinker.launch import GRAMMAR_BACKEND, server_arguments
from sglang_omni.engines.thinker.metric_files import metric_files
from sglang_omni.engines.thinker.moe_configs import VARIABLE, tuned_environment
from sglang_omni.engines.thinker.shared_features import SharedFeatureRef
from sglang_omni.models.ming.config import read_json
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest

LOGGER = logging.getLogger(__name__)

# What the first requests may ask: greedy answers, and every kind of sampling. On a GPU a kernel may
# be compiled on first use, for longer than a step may take before the engine counts as hung.
WARM_UPS: tuple[dict[str, Any], ...] = (
    {"temperature": 0.0},
    {"temperature": 0.8, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.1},
    {"temperature": 0.8, "top_p": 0.9},
    {"frequency_penalty": 0.1, "presence_penalty": 0.1, "logit_bias": {"0": 1.0}},
)
# Tokens of a prompt: a prefill of many has other kernels than one of few, up to those that SGLang
# reads at once (8,192 on an H200). What a prompt has in common with the last is not read again.
WARM_UP_PROMPTS = (200, 700, 2000, 8000)
WARM_UP_SCHEMA = {"temperature": 0.0, "json_schema": '{"type": "object"}'}
# How often to look for processes that SGLang has started, and whether one is stopped, in seconds,
# while it starts and later. The end of one is noticed at once.
LOOK_S, SETTLED_LOOK_S = 0.1, 0.5
# For how long one may be stopped: SGLang itself asks only its schedulers whether they live.
STOPPED_S = 3.0


def open_worker(settings: ThinkerSettings) -> "ThinkerWorker":
    """Load the thinker and let it generate, so that the first request meets a warm engine."""
    report_progress("loading the thinker")
    closing, started = threading.Event(), threading.Event()
    threading.Thread(target=watch_processes, args=(closing, started), daemon=True).start()
    _name_tuned_kernels(settings)
    # The schedulers take exact timers again once their process groups are made. On a card they spin
    # while they wait, and so do the threads of NCCL, which were not measured with late timers.
    with relaxed_timers() if settings.device == "cpu" else nullcontext():
        engine = Engine(**server_arguments(settings, find_rendezvous_port()))
    started.set()
    report_progress("warming up the thinker")
    info = _info(engine)
    for sampling in (*WARM_UPS, *([WARM_UP_SCHEMA] if info.has_grammars else [])):
        engine.generate(input_ids=[0, 1], sampling_params={**sampling, "max_new_tokens": 2})
    if settings.device == "cuda":
        for tokens in WARM_UP_PROMPTS:
            if tokens < min(info.context_length, info.max_total_tokens):
                engine.generate(input_ids=[0] * tokens, sampling_params={"max_new_tokens": 1})
    restore_sigterm()
    return ThinkerWorker(engine, info, settings.deterministic, closing)


def _name_tuned_kernels(settings: ThinkerSettings) -> None:
    """Let SGLang find kernel configurations tuned for this card, unless the user chose some."""
    if settings.device == "cuda" and VARIABLE not in os.environ:
        # Its own cards are all that this process sees.
        card = list_visible_gpus()[0].name
        config = read_json(settings.checkpoint / "config.json")
        os.environ |= tuned_environment(config, card, settings.tp_size)


def watch_processes(closing: threading.Event, started: threading.Event) -> None:
    """End this process as soon as one that SGLang started is gone, or has long been stopped, unless
    it is `closing`. Once SGLang has `started` there are no more processes to find.

    SGLang looks after them itself, but takes five seconds to miss one, and while it starts it waits
    for a rank that will never answer. Meanwhile its loop, which is ours, stands still in whatever
    it sends to a scheduler that is not there.
    """
    seen: set[Any] = set()
    moved_at: dict[Any, float] = {}
    while not closing.is_set():
        seen |= set(multiprocessing.active_children())
        look_s = SETTLED_LOOK_S if started.is_set() else LOOK_S
        connection.wait([process.sentinel for process in seen], timeout=look_s)
        now = time.monotonic()
        moved_at |= {one: now for one in seen if one not in moved_at or not is_stopped(one.pid)}
        lost = [one.name for one in seen if not one.is_alive() or now - moved_at[one] > STOPPED_S]
        if not seen:
            closing.wait(LOOK_S)
        elif lost and not closing.is_set():
            LOGGER.error("SGLang lost its process %s", ", ".join(lost))
            # The guard takes along what is left; an orderly exit would wait for it.
            os._exit(1)


def restore_sigterm() -> None:
    """Undo SGLang's own way to drain: told to end, it would take requests for seconds more that it
    then fails, while the server takes it for healthy. Draining is the server's business."""
    asyncio.get_event_loop().remove_signal_handler(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _info(engine: Engine) -> ThinkerInfo:
    server = engine.get_server_info()
    return ThinkerInfo(
        # Less than the model's context where the KV budget is smaller, and SGLang's reserve.
        context_length=engine.tokenizer_manager.max_req_input_len,
        max_total_tokens=server["max_total_num_tokens"],
        max_running_requests=server["max_running_requests"],
        has_grammars=engine.server_args.grammar_backend != "none",
        supports_grammar=engine.server_args.grammar_backend in (GRAMMAR_BACKEND, "llguidance"),
    )


class ThinkerWorker:
    """Streams tokens from one SGLang engine; SGLang batches."""

    def __init__(
        self, engine: Engine, info: ThinkerInfo, deterministic: bool, closing: threading.Event
    ) -> None:
        """`closing` is set once SGLang's processes may end."""
        self.info = info
        self._engine = engine
        self._deterministic = deterministic
        self._aborted = 0
        self._closing = closing
        self._metric_files = metric_files()
        self._metric_files.reserve()

    async def run(
        self, request_id: str, request: ThinkerRequest
    ) -> AsyncGenerator[ThinkerOutput, None]:
        """Yield new tokens until the request stops. Closing the generator frees its KV."""
        finished = False
        try:
            # What `Engine.async_generate` makes of its arguments, which lack `extra_key`.
            asked = GenerateReqInput(
                input_ids=list(request.input_ids),
                sampling_params=self._sampling(request.sampling),
                image_data=[_media(entry) for entry in request.features] or None,
                extra_key=request.tenant,
                stream=True,
                rid=request_id,
                return_logprob=request.sampling.top_logprobs is not None,
                top_logprobs_num=request.sampling.top_logprobs or 0,
            )
            async for raw in self._engine.tokenizer_manager.generate_request(asked, None):
                output = _output(raw, request.sampling)
                finished = output.last
                yield output
        except ValueError as error:
            # SGLang validates lengths and parameters here, before it schedules anything.
            field = _param(str(error), request.sampling)
            raise InvalidRequest(str(error), param=field) from error
        finally:
            if not finished:
                # Closing SGLang's generator aborts nothing.
                self._aborted += 1
                self._engine.tokenizer_manager.abort_request(request_id)

    async def counters(self) -> dict[str, float]:
        """Scheduler load. The round trip through every scheduler is the liveness probe."""
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
            "aborted": self._aborted,
        }

    async def profile(self, folder: str | None) -> None:
        """SGLang's own profiler, in every scheduler."""
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
            # llguidance tells Lark from SGLang's EBNF by how it begins.
            parameters["ebnf"] = sampling.grammar.lark
        if self._deterministic and sampling.seed is not None:
            parameters["sampling_seed"] = sampling.seed
        return parameters


def _media(entry: Features) -> dict[str, Any]:
    return {
        "modality": entry.modality,
        # SGLang keeps what it was asked until its schedulers have answered, or said that they have
        # given it up: by then they have the rows.
        "feature": SharedFeatureRef(entry),
        "offsets": list(entry.offsets),
        "grid": list(entry.grid),
        "hash": entry.content_hash,
    }


def _output(raw: dict[str, Any], sampling: SamplingParams) -> ThinkerOutput:
    meta = raw["meta_info"]
    reason = meta["finish_reason"]
    if reason is not None and reason["type"] == "abort":
        message = reason.get("message", "aborted")
        if reason.get("status_code") == HTTPStatus.BAD_REQUEST:
            raise InvalidRequest(message, param=_param(message, sampling))
        raise EngineFailed(f"the thinker gave up: {message}")
    return ThinkerOutput(
        token_ids=tuple(raw["output_ids"]),
        prompt_tokens=meta["prompt_tokens"],
        cached_tokens=meta["cached_tokens"],
        completion_tokens=meta["completion_tokens"],
        finish_reason=reason["type"] if reason else None,
        logprobs=_logprobs(meta),
    )


def _logprobs(meta: dict[str, Any]) -> tuple[TokenLogprob, ...]:
    """SGLang's lists: (log probability, token id, None) for each new token, and lists of such."""
    chosen = meta.get("output_token_logprobs") or []
    likeliest = meta.get("output_top_logprobs") or [None] * len(chosen)
    return tuple(
        TokenLogprob(token, value, tuple((other, one) for one, other, _ in top or ()))
        for (value, token, _), top in zip(chosen, likeliest, strict=True)
    )


def _param(message: str, sampling: SamplingParams) -> str:
    """The field that SGLang complains of."""
    if "logit_bias" in message:
        return "logit_bias"
    if "rammar" not in message and "schema" not in message:
        return "messages"
    return sampling.grammar.field if sampling.grammar else "response_format"
