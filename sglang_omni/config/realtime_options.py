"""Options of `/v1/realtime`: limits of its sessions."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import OPTION_CONFIG, Count, Number, Seconds


@dataclass(frozen=True, config=OPTION_CONFIG)
class RealtimeOptions:
    """Limits of the sessions of /v1/realtime."""

    max_sessions: Count = 64
    """Maximum number of sessions."""

    max_seconds: Seconds = 3600.0
    """Maximum duration of a session, in seconds."""

    idle_seconds: Seconds = 600.0
    """Seconds without a client event after which a session is closed."""

    # 15 MiB of audio are 20 MiB of base64.
    frame_bytes: Count = 24 << 20
    """Maximum size of a frame; a larger one closes the session."""

    conversation_bytes: Count = 64 << 20
    """Maximum size of a conversation; beyond it the oldest audio and images are dropped."""

    turn_seconds: Annotated[Number, Field(ge=1)] = 300.0
    """Maximum length of a user turn, in seconds."""

    send_bytes: Count = 1 << 20
    """Queued bytes from which a response pauses for a slow client."""

    stall_seconds: Annotated[Number, Field(ge=0.1)] = 20.0
    """Seconds without reading after which a client is disconnected."""
