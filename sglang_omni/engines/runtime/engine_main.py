"""The engine process: `python -m sglang_omni.engines.runtime.engine_main SOCKET_FD PARENT_PID`.

It builds the worker that the first message names and serves it until the server sends `Stop`. It
ignores SIGINT (Ctrl-C), because the server stops its engines itself.
"""

import asyncio
import gc
import importlib
import logging
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial

from sglang_omni.engines.runtime.failure import describe
from sglang_omni.engines.runtime.log_records import log_to_server
from sglang_omni.engines.runtime.orphan_reaper import (
    die_with_parent,
    fork_orphan_reaper,
    kill_group,
    report_shared_memory,
)
from sglang_omni.engines.runtime.output_sender import OutputSender
from sglang_omni.engines.runtime.step_loop import StepInputQueue, run_steps
from sglang_omni.engines.runtime.stream_loop import StreamLoop
from sglang_omni.engines.runtime.transport import (
    Progress,
    Ready,
    Start,
    StartFailed,
    ToEngine,
    receive,
)
from sglang_omni.engines.runtime.worker import StepWorker, StreamWorker, WorkerFactory
from sglang_omni.protocol.errors import OmniError
from sglang_omni.system.progress import set_progress_reporter


def main(descriptor: int, parent: int) -> int:
    """Serve one engine over the inherited socket; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    log_to_server()
    die_with_parent(parent)
    # No other process may hold the socket, neither a program that this one starts nor a fork: its
    # end-of-file tells the server that this process has died.
    os.set_inheritable(descriptor, False)
    os.register_at_fork(after_in_child=partial(os.close, descriptor))
    reaper_pipe = fork_orphan_reaper()
    sock = socket.socket(fileno=descriptor)
    sender = OutputSender(sock)
    try:
        status = _serve(receive(sock), sender, reaper_pipe)
    except Exception:
        traceback.print_exc()
        status = 1
    finally:
        sender.close()
    if status:
        # An orderly exit may wait seconds for children of the failed worker, while clients wait for
        # this process to end. The orphan reaper kills the children.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _serve(messages: Iterator[ToEngine], sender: OutputSender, reaper_pipe: int) -> int:
    start = next(messages)
    assert isinstance(start, Start)
    set_progress_reporter(lambda text: sender.send(Progress(text)))
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)
        try:
            worker = _build_worker(start)
        except Exception as error:
            traceback.print_exc()
            sender.send(StartFailed(describe(error), isinstance(error, OmniError)))
            return 1
        finally:
            report_shared_memory(reaper_pipe)
        sender.send(Ready(worker.info))
        if isinstance(worker, StepWorker):
            _serve_steps(worker, messages, sender, start.window)
        else:
            _serve_streams(worker, messages, sender, start.window)
    return 0


def _build_worker(start: Start) -> StepWorker | StreamWorker:
    # Importing and loading create long-lived objects. Scanning them repeatedly would take an eighth
    # of the start time and lengthen every later garbage collection.
    gc.disable()
    worker = _import_factory(start.factory)(start.settings)
    gc.freeze()
    gc.enable()
    return worker


def _import_factory(path: str) -> WorkerFactory:
    module, _, function = path.partition(":")
    factory: WorkerFactory = getattr(importlib.import_module(module), function)
    return factory


def _serve_steps(
    worker: StepWorker, messages: Iterator[ToEngine], sender: OutputSender, window: int
) -> None:
    inputs = StepInputQueue(window)
    _start_reader(messages, inputs.deliver)
    run_steps(worker, inputs, sender)


def _serve_streams(
    worker: StreamWorker, messages: Iterator[ToEngine], sender: OutputSender, window: int
) -> None:
    # The factory may have set another loop: SGLang's engine creates and sets its own.
    with closing(asyncio.get_event_loop()) as loop:
        streams = StreamLoop(worker, sender, window)

        def deliver(message: ToEngine) -> None:
            with suppress(RuntimeError):  # The loop is closed: the engine is exiting.
                loop.call_soon_threadsafe(streams.deliver, message)

        _start_reader(messages, deliver)
        loop.run_until_complete(streams.run())


def _start_reader(messages: Iterator[ToEngine], deliver: Callable[[ToEngine], None]) -> None:
    """Read in a separate thread, so that the API process never waits for a step."""
    arguments = (messages, deliver)
    threading.Thread(target=_read_messages, args=arguments, name="reader", daemon=True).start()


def _read_messages(messages: Iterator[ToEngine], deliver: Callable[[ToEngine], None]) -> None:
    try:
        for message in messages:
            deliver(message)
    except Exception:
        traceback.print_exc()
    # The API process is gone, or its messages cannot be read: end the engine.
    kill_group()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
