"""One replica of a pool: an engine process that takes requests, drains, or is on standby."""

import time
from dataclasses import replace
from typing import Literal

from sglang_omni.engines.runtime.process import EngineHealth, EngineProcess, ProcessSpec

ReplicaPhase = Literal["active", "draining", "standby"]
# An engine that is unresponsive for a moment may recover, so it still counts.
UP_STATES = ("ready", "unresponsive")


class Replica(EngineProcess):
    """An engine process whose pool may leave it stopped. The pool's owner sets the phase.

    A replica that drains ends what it has, and takes new requests only if no other can.
    """

    def __init__(self, spec: ProcessSpec, is_autoscaled: bool = False) -> None:
        """Take the spec, and whether the replica runs only when it is needed."""
        super().__init__(spec)
        self.is_autoscaled = is_autoscaled
        self._phase: ReplicaPhase = "standby" if is_autoscaled else "active"
        self._phase_since = time.time()

    @property
    def phase(self) -> ReplicaPhase:
        """Return whether the replica is to take requests, to end those it has, or not to run."""
        return self._phase

    def set_phase(self, phase: ReplicaPhase) -> None:
        """Change the phase. The process itself does not change."""
        self._phase, self._phase_since = phase, time.time()

    @property
    def health(self) -> EngineHealth:
        """Return a snapshot of the replica's health, in which the phase is a state.

        On standby there is no `info`: it describes what can be used.
        """
        health = super().health
        if self._phase == "standby":
            return replace(health, state="standby", since=self._phase_since, info=None)
        if self._phase == "draining" and health.state in UP_STATES:
            return replace(health, state="draining", since=self._phase_since)
        return health


def is_autoscaled(process: EngineProcess) -> bool:
    """Return whether a process is a replica that runs only when it is needed."""
    return isinstance(process, Replica) and process.is_autoscaled
