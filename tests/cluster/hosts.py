"""Two pretended machines on this one: network namespaces, and a Ray node in each.

The test itself moves into the first one, `a`, so that its servers run there. The second one, `b`,
has its own host name and its own `/dev/shm`. Their link can be cut.
"""

import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_CLONE_NEWNET = 0x40000000
ADDRESS_A, ADDRESS_B = "10.77.0.1", "10.77.0.2"
NETWORK = "10.77.0.0/24"
RAY_PORT = 6379
# What `ray start` runs, without the Python that is first in the path.
CARDS = Path(__file__).parent / "fake_driver"
RAY = [sys.executable, "-m", "ray.scripts.scripts"]


def run(*command: str) -> str:
    """Run a command. Return what it prints."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def enter_namespace(path: str) -> None:
    """Move this thread, and the processes that it starts, into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if libc.setns(descriptor, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {path}")
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Link:
    """The link between the machines, by the names of the namespaces."""

    a: str
    b: str

    def cut(self) -> None:
        """Lose every packet, silently."""
        run("ip", "-n", self.b, "link", "set", "to-a", "down")

    def restore(self) -> None:
        """Connect the machines again."""
        run("ip", "-n", self.b, "link", "set", "to-a", "up")

    def processes_of_b(self) -> list[psutil.Process]:
        """Return the processes that live on the second machine."""
        found = []
        for pid in run("ip", "netns", "pids", self.b).split():
            with suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(int(pid)))
        return found

    def commands_of_b(self) -> dict[psutil.Process, str]:
        """Return the processes that live on the second machine with their command lines.

        One that has ended has none, though its parent may not have waited for it yet.
        """
        found = {}
        for process in self.processes_of_b():
            with suppress(psutil.NoSuchProcess):
                found[process] = " ".join(process.cmdline())
        return found

    def on_b(self, *command: str) -> list[str]:
        """Return a command that runs on the second machine."""
        setup = 'mount -t tmpfs tmpfs /dev/shm && hostname host-b && exec "$@"'
        unshared = ["unshare", "--mount", "--uts", "sh", "-c", setup, "sh", *command]
        return ["ip", "netns", "exec", self.b, *unshared]


def find(link: Link, *parts: str) -> list[psutil.Process]:
    """Return the processes of the other machine with one of these in their command line."""
    return [
        process
        for process, command in link.commands_of_b().items()
        if any(part in command for part in parts)
    ]


def engines_of(link: Link) -> list[psutil.Process]:
    """Return the engine processes of the other machine, without their orphan reapers."""
    found = find(link, "engine_main")
    children = set[psutil.Process]()
    for process in found:
        with suppress(psutil.NoSuchProcess):
            children.update(process.children())
    return [process for process in found if process not in children]


@contextmanager
def two_machines() -> Iterator[Link]:
    """Make two machines with a link, and move this thread into the first."""
    names = [f"omni-{letter}-{os.getpid()}" for letter in "ab"]
    link = Link(*names)
    home = f"/proc/{os.getpid()}/task/{os.getpid()}/ns/net"
    back = os.open(home, os.O_RDONLY)
    try:
        for name in names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", names[0], "link", "add", "to-b", "type", "veth", "peer", "to-a")
        run("ip", "-n", names[0], "link", "set", "to-a", "netns", names[1])
        for name, device, address in ((names[0], "to-b", ADDRESS_A), (names[1], "to-a", ADDRESS_B)):
            run("ip", "-n", name, "address", "add", f"{address}/24", "dev", device)
            run("ip", "-n", name, "link", "set", device, "up")
        enter_namespace(f"/run/netns/{names[0]}")
        yield link
    finally:
        enter_namespace(f"/proc/self/fd/{back}")
        os.close(back)
        for process in link.processes_of_b():
            process.kill()
        for name in names:
            run("ip", "netns", "delete", name)


class RayNode:
    """`ray start`, started again whenever it ends, as systemd would."""

    def __init__(self, command: list[str], log: Path) -> None:
        loop = 'while true; do "$@"; sleep 1; done'
        with log.open("a") as output:
            self._process = subprocess.Popen(
                ["bash", "-c", loop, "bash", *command],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def processes(self) -> list[psutil.Process]:
        """Return what belongs to the node, without the loop."""
        return psutil.Process(self._process.pid).children(recursive=True)

    def kill(self) -> None:
        """Kill every process of the node at once. The loop starts it again."""
        kill_all(self.processes)

    def stop(self) -> None:
        """End the node."""
        family = self.processes
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        kill_all(family)


def kill_all(processes: list[psutil.Process]) -> None:
    """Kill processes and wait until they are gone."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=10)


@dataclass(frozen=True)
class Machines:
    """Two machines of one Ray cluster: the head `node-a`, where the test is, and `node-b`."""

    link: Link
    head: RayNode
    worker: RayNode

    @property
    def address(self) -> str:
        """Return the address of the Ray cluster."""
        return f"{ADDRESS_A}:{RAY_PORT}"


@contextmanager
def ray_machines(folder: Path) -> Iterator[Machines]:
    """Start a Ray cluster over two machines, whose members need a token."""
    # Sockets below it have long names.
    with two_machines() as link, tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as temp:
        environment = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_memory_monitor_refresh_ms": "0",
        }
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        common = ["--block", "--num-cpus", "1", "--object-store-memory", str(100 << 20)]
        head = [*RAY, "start", "--head", "--port", str(RAY_PORT), "--node-ip-address", ADDRESS_A]
        head += ["--node-name", "node-a", "--include-dashboard=false", "--temp-dir", temp, *common]
        worker = [*RAY, "start", "--address", f"{ADDRESS_A}:{RAY_PORT}"]
        worker += ["--node-ip-address", ADDRESS_B, "--node-name", "node-b", *common]
        # The second machine has GPUs, as far as anybody asks for their sizes.
        searched = os.pathsep.join(filter(None, (str(CARDS), os.environ.get("PYTHONPATH"))))
        worker = ["env", f"PYTHONPATH={searched}", *worker]
        nodes = []
        try:
            nodes.append(RayNode(head, folder / "head.log"))
            wait_for_port(ADDRESS_A, RAY_PORT, 60)
            nodes.append(RayNode(link.on_b(*worker), folder / "worker.log"))
            machines = Machines(link, *nodes)
            wait_for_nodes(machines.address, 2, 60)
            yield machines
        finally:
            for node in reversed(nodes):
                node.stop()
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


_COUNT_NODES = """
import sys, time, ray
ray.init(sys.argv[1], log_to_driver=False, configure_logging=False)
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[2]):
    time.sleep(0.2)
"""


def wait_for_nodes(address: str, count: int, seconds: float) -> None:
    """Wait until a Ray cluster has so many living nodes."""
    command = [sys.executable, "-c", _COUNT_NODES, address, str(count)]
    subprocess.run(command, check=True, timeout=seconds, capture_output=True)


def wait_for_port(address: str, port: int, seconds: float) -> None:
    """Wait until something listens on a port."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((address, port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"nothing listens on {address}:{port}"
            time.sleep(0.2)
