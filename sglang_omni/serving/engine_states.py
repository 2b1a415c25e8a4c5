"""Describes the engines of a server, for `/health` and `sgl-omni status`."""

from dataclasses import asdict
from typing import Any

from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.engines.runtime.replica import is_autoscaled


def describe_process(process: EngineProcess) -> dict[str, Any]:
    """Return the state of an engine process, its kind, replica, machine ("": ours) and GPUs.

    `companions` has the machines and GPUs of its other processes; without any it is left out.
    """
    spec = process.spec
    described = asdict(process.health) | {
        "autoscaled": is_autoscaled(process),
        "kind": spec.kind,
        "replica": spec.replica,
        **_describe_place(spec),
    }
    if spec.companions:
        described["companions"] = [_describe_place(one) for one in spec.companions]
    return described


def _describe_place(spec: ProcessSpec) -> dict[str, Any]:
    return {"node": spec.node, "gpus": spec.gpus}
