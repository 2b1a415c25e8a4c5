"""Implements `sgl-omni serve`: runs the HTTP server and its engines."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from sglang_omni.config.load import to_yaml
from sglang_omni.config.tree import Config
from sglang_omni.entrypoints.cli.access import build_tls_options, read_access
from sglang_omni.entrypoints.cli.reload import reload
from sglang_omni.entrypoints.cli.shutdown_signals import ShutdownSignals
from sglang_omni.entrypoints.cli.start_progress import show_progress
from sglang_omni.entrypoints.cli.startup_banner import (
    format_header,
    format_startup_banner,
    get_public_url,
    print_text,
)
from sglang_omni.entrypoints.http.app import create_app
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.entrypoints.http.middleware.drain import InFlight
from sglang_omni.entrypoints.http.request_body.reader import BodyRules
from sglang_omni.entrypoints.http.shared_store.open_stores import open_stores
from sglang_omni.entrypoints.http.transport.slow_clients import SlowClientRules
from sglang_omni.entrypoints.http.transport.uvicorn_server import create_web_server, freeze_gc, run
from sglang_omni.entrypoints.startup.cache_folders import prepare_home
from sglang_omni.entrypoints.startup.checkpoint import find_checkpoint
from sglang_omni.entrypoints.startup.log_folder import open_log_folder
from sglang_omni.entrypoints.startup.placement import apply_placement
from sglang_omni.entrypoints.startup.prefetch import prefetch_weights
from sglang_omni.entrypoints.startup.preflight_checks import check_config, make_write_error
from sglang_omni.observability.audit_file import audit_file
from sglang_omni.observability.logs import set_up_logging
from sglang_omni.observability.otel import open_exporter
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.protocol.errors import StartupError
from sglang_omni.serving.engine_config import build_output_rules
from sglang_omni.serving.server import Server

LOGGER = logging.getLogger(__name__)

# Time limit for sending the errors of interrupted streams, in seconds.
GRACE_PERIOD_S = 2


def serve(config: Config, open_server: Callable[[Config, Path], Server] = Server) -> int:
    """Serve until Ctrl-C or SIGTERM, then drain. Return the exit status.

    Raises `StartupError`.
    """
    set_up_logging(config.log_level, config.log_format)
    check_config(config)
    with bind_socket(config.host, config.port) as listener:
        access, tls = read_access(config), build_tls_options(config)
        checkpoint = find_checkpoint(config.model_path)
        print_text(format_header(checkpoint, config.device))
        config, plan = apply_placement(config, checkpoint)
        if plan:
            print(plan, flush=True)
        prefetch_weights(config, checkpoint)
        folder = open_log_folder(config.log_folder, str(listener.getsockname()[1]))
        config = replace(config, log_folder=folder)
        prepare_home()
        write_config(config, checkpoint)
        with audit_file(config.audit_log):
            run(_run(open_server(config, checkpoint), listener, access, tls))
    return 0


def write_config(config: Config, checkpoint: Path) -> None:
    """Write the resolved configuration to the log folder, or print it if output is shown.

    Raises `StartupError`.
    """
    text = f"# checkpoint: {checkpoint}\n{to_yaml(config)}"
    rules = build_output_rules(config)
    if rules.shown or rules.folder is None:
        print(text, flush=True)
        return
    path = rules.folder / "config.yaml"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise make_write_error(path, error) from None


def bind_socket(host: str, port: int) -> socket.socket:
    """Bind the port before anything is loaded. Raises `StartupError` if it is in use.

    The socket listens at once: until then, a second server could bind the same port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be bound: {error}"
        raise StartupError(f"port {port} of {host} {reason}; choose another with --port") from None
    return listener


async def _run(
    server: Server, listener: socket.socket, access: Access, tls: dict[str, Any]
) -> None:
    """Open what the server sends to and stores in, and serve."""
    config, in_flight = server.config, InFlight()
    exporter = open_exporter(config.otlp_endpoint) if config.otlp_endpoint else None
    recorder = TraceRecorder(lambda: server.sample_rate, [exporter] if exporter else [])
    rules = build_body_rules(config)
    try:
        async with open_stores(config, recorder.metrics.registry) as stores:
            app = create_app(server, access, in_flight, recorder, rules, config.rate_limit, stores)
            web = _create_web_server(app, config, recorder, tls)
            await _serve(server, web, listener, access, in_flight)
    finally:
        if exporter:
            await asyncio.to_thread(exporter.close)


def _create_web_server(
    app: FastAPI, config: Config, recorder: TraceRecorder, tls: dict[str, Any]
) -> uvicorn.Server:
    # Our access log has the request id; uvicorn's other log lines go to our handlers.
    options = {**tls, "access_log": False, "log_config": None}
    options["slow_clients"] = SlowClientRules(config.unread_bytes, config.unread_timeout)
    options["frame_bytes"] = config.realtime.frame_bytes
    options |= {"limits": config.http, "on_refusal": recorder.record_refusal}
    # At `info` uvicorn logs its own start and end, and every WebSocket.
    level = "warning" if config.log_level == "info" else config.log_level
    return create_web_server(app, level, GRACE_PERIOD_S, handle_signals=False, **options)


async def _serve(
    server: Server,
    web: uvicorn.Server,
    listener: socket.socket,
    access: Access,
    in_flight: InFlight,
) -> None:
    """Serve `/health` at once, and every other route as soon as its engine is ready."""
    config = server.config
    serving = asyncio.create_task(web.serve(sockets=[listener]))
    starting = asyncio.create_task(_start(server, listener))
    with ShutdownSignals(lambda: reload(config, access, web.config.ssl)) as signals:
        shutdown = asyncio.create_task(signals.requested.wait())
        try:
            await asyncio.wait({serving, starting, shutdown}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                # Raises the error of an engine that failed to start.
                starting.result()
                await asyncio.wait({serving, shutdown}, return_when=asyncio.FIRST_COMPLETED)
                await _drain(server, in_flight, signals)
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            # Stop the engines first, so that clients of running requests receive an error.
            if not await signals.wait_unless_forced(server.stop()):
                await server.stop(deadline_s=0.0)
            web.should_exit = True
            shutdown.cancel()
            await asyncio.gather(serving, shutdown, return_exceptions=True)
    # Raises the error of a web server that failed.
    serving.result()


def build_body_rules(config: Config) -> BodyRules:
    """Return the limits of request bodies."""
    http = config.http
    return BodyRules(
        min_rate=http.min_body_rate,
        window_s=http.body_window,
        max_held_bytes=http.max_bodies_bytes,
        max_total_rate=http.max_bodies_rate,
        request_timeout_s=config.request_timeout,
    )


async def _drain(server: Server, in_flight: InFlight, signals: ShutdownSignals) -> None:
    """Accept no new requests, and wait for the running ones up to the drain timeout.

    Before that, proxies have some time to send new requests to other servers.
    """
    server.leave()
    if delay_s := server.config.shutdown_delay:
        LOGGER.warning("accepting requests for %g s more; /ready says 503", delay_s)
        await signals.wait_unless_forced(asyncio.sleep(delay_s))
    server.draining.set()
    if in_flight.count:
        timeout_s = server.config.drain_timeout
        LOGGER.warning("draining %d requests, for %g s at most", in_flight.count, timeout_s)
        await signals.wait_unless_forced(in_flight.wait_idle(), timeout_s)


async def _start(server: Server, listener: socket.socket) -> None:
    async with show_progress(server.processes) as start:
        await server.start()
    freeze_gc()
    address = get_public_url(server.config, *listener.getsockname()[:2])
    prompts = server.capabilities.starter_prompts
    banner = format_startup_banner(
        server.config, address, server.processes, prompts, start.describe_longest()
    )
    print_text(f"{start.summary()}\n{banner}")
