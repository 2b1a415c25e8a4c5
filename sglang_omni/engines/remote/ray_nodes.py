"""Asks the nodes of a Ray cluster, and starts hosts of engines on them.

The only module that imports Ray.
"""

import gc
import logging
import os
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from sglang_omni.engines.remote.host import Launch, serve_engine
from sglang_omni.engines.remote.node_report import (
    MachineReport,
    NodeReport,
    find_report,
    report_machine,
)
from sglang_omni.engines.runtime.failure import describe
from sglang_omni.engines.runtime.gpus import VISIBLE_DEVICES_VARIABLE
from sglang_omni.protocol.errors import StartupError

# Without it, the first `ray.init` of a machine reports its use to Ray's makers.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
MISSING_RAY = "engines on other machines need Ray: pip install 'sglang_omni[cluster]'"


class EngineHost:
    """The actor: one engine on one node."""

    def serve(self, launch: Launch) -> str:
        """Run the engine; see `serve_engine`."""
        show_gpus()
        # Ray's many objects would be looked through again and again.
        gc.freeze()
        return serve_engine(launch)


def show_gpus() -> None:
    """Let this process see all GPUs of its machine.

    Ray hides them from a process that reserved none. The server names those of an engine itself.
    """
    os.environ.pop(VISIBLE_DEVICES_VARIABLE, None)


def describe_machine(paths: Sequence[Path]) -> MachineReport:
    """Describe the machine of this process of Ray; see `report_machine`."""
    show_gpus()
    return report_machine(paths)


def join_cluster(address: str, node: str) -> str:
    """Connect this process to a Ray cluster, and return the address of a node.

    Raises:
        StartupError: Ray is not installed, the cluster cannot be reached or has no such node.
    """
    connect(address)
    nodes = _list_nodes()
    return str(nodes[find_node(node, nodes)]["NodeManagerAddress"])


def connect(address: str) -> None:
    """Connect this process to a Ray cluster.

    Raises:
        StartupError: Ray is not installed, or the cluster cannot be reached.
    """
    try:
        import ray
    except ImportError as error:
        raise StartupError(f"{MISSING_RAY} ({error})") from error
    try:
        ray.init(
            address,
            namespace="sglang_omni",
            log_to_driver=False,
            configure_logging=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:  # Ray has no common type of them.
        raise StartupError(f"cluster.ray_address {address}: {error}") from error


def _list_nodes() -> list[dict[str, Any]]:
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()
    return nodes


def ask_nodes(paths: Sequence[Path], timeout_s: float) -> tuple[NodeReport, ...]:
    """Return the report of every living node of the cluster that this process is connected to.

    Args:
        paths: What every machine must have.
        timeout_s: How long a node may take to answer, in seconds.
    """
    import ray

    own_id = ray.get_runtime_context().get_node_id()
    living = [node for node in _list_nodes() if node["Alive"]]
    # A task is sent as the name of the function, so the node runs its own version of it.
    task: Any = ray.remote(num_cpus=0, max_retries=0)(describe_machine)
    answers = [
        task.options(scheduling_strategy=_bind(node["NodeID"])).remote(tuple(paths))
        for node in living
    ]
    done, _ = ray.wait(answers, num_returns=len(answers), timeout=timeout_s)
    reports = []
    for node, answer in zip(living, answers, strict=True):
        report = replace(_describe_node(node), is_server=node["NodeID"] == own_id)
        if answer not in done:
            report = replace(report, error=f"nothing came within {timeout_s:g} s")
        else:
            report = _add_answer(report, answer)
        reports.append(report)
    return tuple(reports)


def _add_answer(report: NodeReport, answer: Any) -> NodeReport:
    import ray

    try:
        return replace(report, machine=ray.get(answer))
    except Exception as error:  # Of the task, or of Ray.
        cause = getattr(error, "cause", None) or error
        reason = describe(cause) if isinstance(cause, Exception) else str(cause)
        # Ray's messages have the stack of the other process; its last line is the error.
        return replace(report, error=reason.strip().splitlines()[-1])


def _bind(node_id: str) -> Any:
    """Return the strategy that runs something on one node, and nowhere else."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node_id, soft=False)


def start_host(node: str, launch: Launch) -> "Future[str]":
    """Start an engine on a node. Return the future of how it ended.

    Raises:
        StartupError: The cluster has no such node.
    """
    import ray

    nodes = _list_nodes()
    strategy = _bind(nodes[find_node(node, nodes)]["NodeID"])
    # The server's configuration names the GPUs, so Ray reserves none.
    actor_class: Any = ray.remote(num_cpus=0, max_restarts=0)(EngineHost)
    actor = actor_class.options(scheduling_strategy=strategy).remote()
    # Without a handle, Ray ends the actor once this call has returned, or this process has ended.
    ended: Future[str] = actor.serve.remote(launch).future()
    return ended


def find_node(name: str, nodes: Sequence[dict[str, Any]]) -> int:
    """Return the index of the living node with this name, address or host name.

    Raises:
        StartupError: There is none, or more than one.
    """
    living = {index: _describe_node(node) for index, node in enumerate(nodes) if node["Alive"]}
    found = find_report(name, list(living.values()))
    return next(index for index, report in living.items() if report is found)


def _describe_node(node: dict[str, Any]) -> NodeReport:
    """Return what Ray knows of a node."""
    address = str(node["NodeManagerAddress"])
    hostname = str(node.get("NodeManagerHostname", ""))
    return NodeReport(str(node.get("NodeName") or address), address, hostname)
