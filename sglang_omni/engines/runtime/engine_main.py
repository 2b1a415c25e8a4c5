"""The engine process: `python -m sglang_omni.engines.runtime.engine_main SOCKET_FD PARENT_PID`.

Builds the worker it is told to build and serves it until it is told to stop. The server's Ctrl-C
is not for it: the server stops its engines itself.
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

from sglang_omni.engines.runtime.failure import describe
from sglang_omni.engines.runtime.log_records import log_to_server
from sglang_omni.engines.runtime.orphan_reaper import die_with_parent, kill_group, leave_guard, tell
from sglang_omni.engines.runtime.output_sender import OutputSender
from sglang_omni.engines.runtime.step_loop import Inbox, run_steps
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
from sglang_omni.models.progress import set_progress_reporter
from sglang_omni.protocol.errors import OmniError


def main(descriptor: int, parent: int) -> int:
    """Serve one engine over the inherited socket; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    log_to_server()
    die_with_parent(parent)
    guard = leave_guard(descriptor)
    # Grandchildren must not inherit the socket: its end-of-file tells the API of this one's death.
    os.set_inheritable(descriptor, False)
    end = socket.socket(fileno=descriptor)
    uplink = OutputSender(end)
    try:
        status = _serve(receive(end), uplink, guard)
    except Exception:
        traceback.print_exc()
        status = 1
    finally:
        uplink.close()
    if status:
        # A worker that broke may have left children that an orderly exit waits for, seconds long,
        # while clients wait for this process's end. The guard takes them along.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _serve(messages: Iterator[ToEngine], uplink: OutputSender, guard: int) -> int:
    start = next(messages)
    assert isinstance(start, Start)
    set_progress_reporter(lambda text: uplink.send(Progress(text)))
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)
        try:
            worker = _build(start)
        except Exception as error:
            traceback.print_exc()
            uplink.send(StartFailed(describe(error), isinstance(error, OmniError)))
            return 1
        finally:
            tell(guard)
        uplink.send(Ready(worker.info))
        if isinstance(worker, StepWorker):
            _serve_steps(worker, messages, uplink, start.window)
        else:
            _serve_streams(worker, messages, uplink, start.window)
    return 0


def _build(start: Start) -> StepWorker | StreamWorker:
    # Importing and loading make objects that last: to look through them again and again would
    # cost an eighth of the start, and a pause in every later collection.
    gc.disable()
    worker = _find_factory(start.factory)(start.settings)
    gc.freeze()
    gc.enable()
    return worker


def _find_factory(path: str) -> WorkerFactory:
    module, _, function = path.partition(":")
    factory: WorkerFactory = getattr(importlib.import_module(module), function)
    return factory


def _serve_steps(
    worker: StepWorker, messages: Iterator[ToEngine], uplink: OutputSender, window: int
) -> None:
    inbox = Inbox(window)
    _start_listening(messages, inbox.deliver)
    run_steps(worker, inbox, uplink)


def _serve_streams(
    worker: StreamWorker, messages: Iterator[ToEngine], uplink: OutputSender, window: int
) -> None:
    # Not necessarily the loop the factory found: SGLang's engine brings, and sets, one of its own.
    with closing(asyncio.get_event_loop()) as loop:
        streams = StreamLoop(worker, uplink, window)

        def deliver(message: ToEngine) -> None:
            with suppress(RuntimeError):  # The loop is closed: the engine is on its way out.
                loop.call_soon_threadsafe(streams.deliver, message)

        _start_listening(messages, deliver)
        loop.run_until_complete(streams.run())


def _start_listening(messages: Iterator[ToEngine], deliver: Callable[[ToEngine], None]) -> None:
    """Read in a thread of its own, so that the API process never waits for a step."""
    arguments = (messages, deliver)
    threading.Thread(target=_listen, args=arguments, name="downlink", daemon=True).start()


def _listen(messages: Iterator[ToEngine], deliver: Callable[[ToEngine], None]) -> None:
    try:
        for message in messages:
            deliver(message)
    except Exception:
        traceback.print_exc()
    # Without the API process, or unable to understand it, there is nothing left to do.
    kill_group()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
