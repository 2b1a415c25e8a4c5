"""Asks the machines of a Ray cluster what they have. The server itself never imports Ray."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sglang_omni.engines.remote.node_report import NodeReport
from sglang_omni.protocol.errors import StartupError

SURVEY_MODULE = "sglang_omni.engines.remote.survey_main"
NODE_DEADLINE_S = 30.0
"""How long a node may take to answer. Its first process imports Ray and this package."""
SURVEY_DEADLINE_S = 75.0
"""How long the whole survey may take, with joining the cluster."""
_MAX_OUTPUT_CHARACTERS = 500

REPORTS = TypeAdapter(tuple[NodeReport, ...])


def survey_cluster(
    ray_address: str, paths: Sequence[Path], deadline_s: float = SURVEY_DEADLINE_S
) -> tuple[NodeReport, ...]:
    """Return the report of every living node, by name. It takes some seconds.

    Args:
        ray_address: HOST:PORT of the Ray cluster.
        paths: What every machine must have: the checkpoint and the TLS files.
        deadline_s: The time limit in seconds.

    Raises:
        StartupError: Ray is not installed, or the cluster does not answer.
    """
    command = [sys.executable, "-m", SURVEY_MODULE, ray_address, *map(str, paths)]
    # A survey is at work for seconds, and imports what the server has not imported.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=deadline_s, env=environment
        )
    except subprocess.TimeoutExpired:
        raise StartupError(
            f"cluster.ray_address {ray_address}: the Ray cluster did not answer within "
            f"{deadline_s:g} s; is `ray start --address {ray_address}` running on this machine?"
        ) from None
    return read_answer(ray_address, done.stdout, done.stderr)


def read_answer(ray_address: str, answer: str, output: str) -> tuple[NodeReport, ...]:
    """Return the reports in the JSON that a survey wrote; `output` is what else it printed.

    Raises:
        StartupError: The survey failed.
    """
    try:
        content = json.loads(answer)
        if "error" in content:
            raise StartupError(content["error"])
        reports = REPORTS.validate_python(content["nodes"], strict=False)
    except (ValueError, TypeError, KeyError, ValidationError):
        end = output.strip()[-_MAX_OUTPUT_CHARACTERS:]
        raise StartupError(
            f"cluster.ray_address {ray_address}: the survey of the cluster failed: {end}"
        ) from None
    return tuple(sorted(reports, key=lambda report: report.name))
