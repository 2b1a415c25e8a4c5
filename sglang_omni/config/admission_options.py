"""Options of the admission queues."""

from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import OPTION_CONFIG, Index, Seconds


@dataclass(frozen=True, config=OPTION_CONFIG)
class AdmissionOptions:
    """Options of the admission queues of the thinker and the talker."""

    queue_length: Index = 64
    """Maximum number of requests that wait for an engine; more are rejected."""

    queue_seconds: Seconds = 30.0
    """Seconds after which a request that waits for an engine is rejected."""
