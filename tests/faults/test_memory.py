"""An engine that gets no more memory fails what needs it, visibly and in time, and comes back.

What runs out is the address space that the kernel grants the engine's process; everything after
that is as in production: an allocation of PyTorch fails in the middle of a forward pass.
"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from tests.faults.conftest import COMMAND
from tests.faults.test_engines import DEAD_S, LINE, RECOVERY_S, picture, works
from tests.server.running import RunningServer, call, run_server, wait_until

# glibc maps what is larger than this many bytes by itself. So a tensor is never served from what
# another one left, and how much memory there is decides whether there is room for it.
VARIABLES = {"MALLOC_MMAP_THRESHOLD_": str(32 << 10)}
# A request that meets no shortage takes this long at most; one that does is told by then.
ANSWER_S = 60.0
# So many streams at once that what a step makes fits no gap in the heap.
SLOTS = 48


@dataclass(frozen=True)
class Hungry:
    """A process to leave `room` bytes to, and requests that need more.

    It is an engine, or the child of it with `part` in its command line. Requests have a kind, a
    route and bodies.
    """

    engine: str
    part: str
    room: int
    needs: str
    route: str
    bodies: tuple[dict[str, Any], ...]

    def process(self, server: RunningServer) -> psutil.Process:
        engine = psutil.Process(server.engine(self.engine)["pid"])
        family = [engine, *engine.children(recursive=True)]
        return next(one for one in family if self.part in "".join(one.cmdline()))


def chat(*content: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "user", "content": list(content)}
    return {"model": "ming-omni", "messages": [message], "max_tokens": 8}


def hungry() -> list[Hungry]:
    words = chat({"type": "text", "text": " ".join([LINE] * 120)})
    image = chat({"type": "image_url", "image_url": {"url": picture(896)}})
    speech = {"model": "ming-omni", "input": " ".join([LINE] * 20), "seed": 1}
    streamed = {**speech, "stream_format": "sse"}
    chats = "chat/completions"
    return [
        Hungry("thinker", "scheduler", 0, "text", chats, (words, {**words, "stream": True}) * 2),
        Hungry(
            "talker", "engine_main", 0, "speech", "audio/speech", (speech, streamed) * (SLOTS // 2)
        ),
        # The pixels have room, what is made of them has none.
        Hungry("encoders", "engine_main", 4 << 20, "picture", chats, (image,)),
    ]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    command = (*COMMAND, "--talker.slots", str(SLOTS))
    with run_server(*command, ready="/ready", env=VARIABLES) as running:
        yield running


# PyTorch's words, Python's, C++'s and the system's: whoever asks for the next byte says it.
OUT_OF_MEMORY = (
    "can't allocate memory",
    "MemoryError",
    "std::bad_alloc",
    "Cannot allocate memory",
    "Unable to allocate",
)


@contextmanager
def no_more_memory(process: psutil.Process, room: int) -> Iterator[None]:
    """The process gets `room` bytes on top of what it has mapped; on leaving, if it lives, all."""
    limit = process.memory_info().vms + room
    process.rlimit(psutil.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        with suppress(psutil.NoSuchProcess):
            process.rlimit(psutil.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.mark.parametrize("one", hungry(), ids=lambda one: one.engine)
def test_an_allocation_that_fails_is_a_5xx_and_no_lasting_harm(
    server: RunningServer, one: Hungry
) -> None:
    wait_until(lambda: server.ready_status() == 200, RECOVERY_S, "ready before")
    said = len(server.printed)
    with no_more_memory(one.process(server), one.room):
        calls = [call(f"{server.api}/{one.route}", body) for body in one.bodies]
        for _, thread in calls:
            thread.join(ANSWER_S)
            assert not thread.is_alive(), "a request is pending"
    failed = [made for made, _ in calls if made.failed_visibly]
    print([made.text[-160:] for made in failed])
    assert failed, "nothing ran out of memory"
    assert all(made.status == 200 or made.failed_visibly for made, _ in calls)
    # An engine that broke takes along what was in flight, all at once.
    assert max(made.ended_at for made in failed) - min(made.ended_at for made in failed) < DEAD_S
    # Not by `/ready` alone: an engine that broke tells its requests before it ends.
    back_s = wait_until(lambda: works(server, one.needs), RECOVERY_S, "the engine works again")
    print(f"works again after {back_s:.1f} s")
    said_of_it = server.printed[said:] + "".join(made.text for made in failed)
    assert any(words in said_of_it for words in OUT_OF_MEMORY), said_of_it
