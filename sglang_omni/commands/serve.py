"""`sgl-omni serve`: the HTTP server over its engines."""

import asyncio
import errno
import logging
import socket

from sglang_omni.api.app import create_app
from sglang_omni.api.web import run, settle, web_server
from sglang_omni.commands.checkpoint import find_checkpoint
from sglang_omni.commands.progress import progress
from sglang_omni.config import Config, as_yaml
from sglang_omni.errors import StartupError
from sglang_omni.server import Server

# How long streams in flight may go on after Ctrl-C.
GRACE_S = 2


def serve(config: Config) -> int:
    """Serve until Ctrl-C or SIGTERM; returns the exit status. Raises `StartupError`."""
    logging.basicConfig(
        level=config.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    with bind(config.host, config.port) as listener:
        checkpoint = find_checkpoint(config.model_path)
        print(f"checkpoint: {checkpoint}\n{as_yaml(config)}", flush=True)
        run(_run(Server(config, checkpoint), listener))
    return 0


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


async def _run(server: Server, listener: socket.socket) -> None:
    """Answer /health at once, everything else as soon as its engine is ready."""
    config = server.config
    frame_bytes = config.realtime.frame_bytes
    web = web_server(create_app(server), config.log_level, GRACE_S, frame_bytes)
    serving = asyncio.create_task(web.serve(sockets=[listener]))
    starting = asyncio.create_task(_start(server, listener))
    try:
        await asyncio.wait({serving, starting}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            # Raises what kept the engines from starting.
            starting.result()
        await serving
    finally:
        web.should_exit = True
        starting.cancel()
        await asyncio.gather(starting, serving, return_exceptions=True)
        await server.stop()


async def _start(server: Server, listener: socket.socket) -> None:
    async with progress(server.processes):
        await server.start()
    settle()
    print(_invitation(server, listener), flush=True)


def _invitation(server: Server, listener: socket.socket) -> str:
    """What to paste to hear something."""
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    body = f'{{"model": "{server.model}", "input": "Hello from Ming.", "response_format": "wav"}}'
    return (
        f"\nready on {address}  (docs: {address}/docs). Hear it:\n\n"
        f"curl -s {address}/v1/audio/speech -H 'Content-Type: application/json' "
        f"-d '{body}' -o hello.wav\n"
    )
