"""How a client spells the protocol: as it is today, or as it was in beta."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sglang_omni.entrypoints.realtime.beta import from_beta, to_beta
from sglang_omni.entrypoints.realtime.items import JSON


@dataclass(frozen=True)
class ProtocolVersion:
    """Events of the client to today's spelling, and today's to the client's."""

    from_client: Callable[[JSON], JSON]
    to_client: Callable[[JSON], Sequence[JSON]]


GA = ProtocolVersion(lambda event: event, lambda event: (event,))
BETA = ProtocolVersion(from_beta, to_beta)
