"""`sgl-omni serve`: the HTTP server over its engines."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sglang_omni.config.options import Config, as_yaml
from sglang_omni.engines.runtime.gpus import list_visible_gpus
from sglang_omni.entrypoints.cli.access import read_access, tls_options
from sglang_omni.entrypoints.cli.cache_folders import prepare_home
from sglang_omni.entrypoints.cli.checkpoint import find_checkpoint
from sglang_omni.entrypoints.cli.log_folder import open_log_folder
from sglang_omni.entrypoints.cli.preflight_checks import check_config, unwritable
from sglang_omni.entrypoints.cli.reload import reload
from sglang_omni.entrypoints.cli.shutdown_signals import ShutdownSignals
from sglang_omni.entrypoints.cli.start_progress import progress
from sglang_omni.entrypoints.cli.startup_banner import header, public_address, ready_lines, show
from sglang_omni.entrypoints.http.app import create_app
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.entrypoints.http.middleware.drain import InFlight
from sglang_omni.entrypoints.http.request_body.reader import BodyRules
from sglang_omni.entrypoints.http.transport.slow_clients import SlowClientRules
from sglang_omni.entrypoints.http.transport.uvicorn_server import create_web_server, freeze_gc, run
from sglang_omni.observability.audit_file import audit_file
from sglang_omni.observability.logs import set_up
from sglang_omni.observability.otel import open_exporter
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.placement.place import check_thinker_fits, format_plan, place_engines
from sglang_omni.placement.sizes import read_sizes
from sglang_omni.protocol.errors import StartupError
from sglang_omni.serving.engine_config import output_rules, resolve_device
from sglang_omni.serving.server import Server

LOGGER = logging.getLogger(__name__)

# How long the errors of cut streams may take to leave.
GRACE_S = 2


def serve(config: Config, open_server: Callable[[Config, Path], Server] = Server) -> int:
    """Serve until Ctrl-C or SIGTERM, then drain; returns the exit status. Raises `StartupError`."""
    set_up(config.log_level, config.log_format)
    check_config(config)
    with bind(config.host, config.port) as listener:
        access, tls = read_access(config), tls_options(config)
        checkpoint = find_checkpoint(config.model_path)
        show(header(checkpoint, config.device))
        config = apply_placement(config, checkpoint)
        folder = open_log_folder(config.log_folder, str(listener.getsockname()[1]))
        config = replace(config, log_folder=folder)
        prepare_home()
        report_config(config, checkpoint)
        with audit_file(config.audit_log):
            run(_run(open_server(config, checkpoint), listener, access, tls))
    return 0


def report_config(config: Config, checkpoint: Path) -> None:
    """Write the configuration as it is used beside the engines' output, or print it where that is
    shown. Raises `StartupError`."""
    text = f"# checkpoint: {checkpoint}\n{as_yaml(config)}"
    rules = output_rules(config)
    if rules.shown or rules.folder is None:
        print(text, flush=True)
        return
    path = rules.folder / "config.yaml"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(path, error) from None


def apply_placement(config: Config, checkpoint: Path) -> Config:
    """Give every engine its cards, and print the plan; on a CPU there is nothing to place.

    Raises `StartupError` before anything is loaded when it cannot fit.
    """
    if resolve_device(config.device) == "cpu":
        return config
    sizes, found = read_sizes(checkpoint), list_visible_gpus()
    if config.placement == "manual":
        check_thinker_fits(config, sizes, found)
        return config
    config, plan = place_engines(config, sizes, found)
    print(format_plan(plan, found), flush=True)
    return config


def bind(host: str, port: int) -> socket.socket:
    """Take the port before anything is loaded. Raises `StartupError` when it is busy.

    It listens at once: until it does, a second server could bind the same port.
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
    """Answer /health at once, everything else as soon as its engine is ready."""
    config, in_flight = server.config, InFlight()
    exporter = open_exporter(config.otlp_endpoint) if config.otlp_endpoint else None
    observer = TraceRecorder(lambda: server.sample_rate, [exporter] if exporter else [])
    app = create_app(server, access, in_flight, observer, body_rules(config), config.rate_limit)
    # Requests leave a line of ours, with their id; uvicorn's other lines go where ours go.
    options = {**tls, "access_log": False, "log_config": None}
    options["slow_clients"] = SlowClientRules(config.unread_bytes, config.unread_timeout)
    options["frame_bytes"] = config.realtime.frame_bytes
    options |= {"limits": config.http, "on_refusal": observer.refuse}
    # At `info` it tells of its own start and end, and of every WebSocket.
    level = "warning" if config.log_level == "info" else config.log_level
    web = create_web_server(app, level, GRACE_S, handle_signals=False, **options)
    serving = asyncio.create_task(web.serve(sockets=[listener]))
    starting = asyncio.create_task(_start(server, listener))
    with ShutdownSignals(lambda: reload(config, access, web.config.ssl)) as farewell:
        asked = asyncio.create_task(farewell.asked.wait())
        try:
            await asyncio.wait({serving, starting, asked}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                # Raises what kept the engines from starting.
                starting.result()
                await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
                await _drain(server, in_flight, farewell)
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            # The engines go first: what is still in flight fails in a way that its client sees.
            if not await farewell.until_insisted(server.stop()):
                await server.stop(deadline_s=0.0)
            web.should_exit = True
            asked.cancel()
            await asyncio.gather(serving, asked, return_exceptions=True)
            if exporter:
                await asyncio.to_thread(exporter.close)
    # Raises what kept the web server from serving.
    serving.result()


def body_rules(config: Config) -> BodyRules:
    """How the bodies of requests must arrive."""
    http = config.http
    return BodyRules(
        min_rate=http.min_body_rate,
        window_s=http.body_window,
        max_held_bytes=http.max_bodies_bytes,
        max_total_rate=http.max_bodies_rate,
        request_timeout_s=config.request_timeout,
    )


async def _drain(server: Server, in_flight: InFlight, farewell: ShutdownSignals) -> None:
    """Begin nothing new, and wait for what has begun, for as long as it may take."""
    server.draining.set()
    if in_flight.count:
        seconds = server.config.drain_timeout
        LOGGER.warning("draining %d requests, for %g s at most", in_flight.count, seconds)
        await farewell.until_insisted(in_flight.wait_idle(), seconds)


async def _start(server: Server, listener: socket.socket) -> None:
    async with progress(server.processes) as board:
        await server.start()
    freeze_gc()
    address = public_address(server.config, *listener.getsockname()[:2])
    prompts = server.capabilities.starter_prompts
    lines = ready_lines(server.config, address, server.processes, prompts)
    show(f"{board.summary()}\n{lines}")
