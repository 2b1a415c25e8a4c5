"""What an engine held on a card is free once it is dead, and all of it once the server is.

    SGLANG_OMNI_SERVE_OPTIONS="--thinker.mem_fraction_static 0.3 ..." pytest -m gpu tests/faults

The card must be the server's own: what is counted is the card's, not a process's.
"""

import os
import signal
import subprocess
from collections.abc import Iterator

import psutil
import pytest

from tests.faults.conftest import COMMAND
from tests.faults.test_engines import RECOVERY_S, VICTIMS, Victim, works
from tests.server.running import RunningServer, run_server, wait_until

pytestmark = pytest.mark.gpu

# On a card the two encoders are engines of their own.
ON_CARD = [one for one in VICTIMS if one.engine != "encoders"]
ON_CARD += [Victim(engine, "picture") for engine in ("image_encoder", "audio_encoder")]

# The driver takes it back within a moment of a death; an allocator's cache and the order of
# captures make two starts of an engine differ by less than this.
GONE_S, SLACK_MIB = 20.0, 256


CARD = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]


def used_mib() -> int:
    """Memory in use on the server's card, by whomever."""
    query = [
        "nvidia-smi",
        f"--id={CARD}",
        "--query-gpu=memory.used",
        "--format=csv,noheader,nounits",
    ]
    return int(subprocess.run(query, check=True, capture_output=True, text=True).stdout)


@pytest.fixture(scope="module")
def before_mib() -> int:
    return used_mib()


@pytest.fixture(scope="module")
def on_card(before_mib: int) -> Iterator[RunningServer]:
    with run_server(*COMMAND, ready="/ready") as running:
        yield running


@pytest.mark.parametrize(
    "hurt", ON_CARD, ids=lambda one: f"{one.engine}{one.part and '-'}{one.part}"
)
def test_an_engine_that_came_back_holds_what_it_held(on_card: RunningServer, hurt: Victim) -> None:
    assert works(on_card, hurt.needs)
    held, restarts = used_mib(), on_card.engine(hurt.engine)["restarts"]
    hurt.process(on_card).kill()
    wait_until(
        lambda: on_card.engine(hurt.engine)["restarts"] > restarts, RECOVERY_S, "started again"
    )
    wait_until(lambda: on_card.ready_status() == 200, RECOVERY_S, "back")
    assert works(on_card, hurt.needs)
    print(f"{held} MiB, after it {used_mib()} MiB")
    assert used_mib() <= held + SLACK_MIB


def test_nothing_is_held_once_the_server_was_killed(
    on_card: RunningServer, before_mib: int
) -> None:
    """The last test of the file: it kills the server."""
    held = used_mib()
    assert held > before_mib + SLACK_MIB, "the server holds nothing on the card"
    family = psutil.Process(on_card.pid).children(recursive=True)
    os.kill(on_card.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(family, timeout=GONE_S)
    assert not alive
    wait_until(lambda: used_mib() <= before_mib, GONE_S, "the memory is free")
    print(f"{held} MiB, then {used_mib()} MiB, before the start {before_mib} MiB")
