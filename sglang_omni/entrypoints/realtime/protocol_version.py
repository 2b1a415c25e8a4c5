"""The versions of the Realtime protocol: GA and beta."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sglang_omni.entrypoints.realtime.beta import from_beta, to_beta
from sglang_omni.entrypoints.realtime.items import JSON


@dataclass(frozen=True)
class ProtocolVersion:
    """Converts a client's events to GA, and GA events to the client's version."""

    from_client: Callable[[JSON], JSON]
    to_client: Callable[[JSON], Sequence[JSON]]


GA = ProtocolVersion(lambda event: event, lambda event: (event,))
BETA = ProtocolVersion(from_beta, to_beta)
