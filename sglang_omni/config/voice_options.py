"""Options of the voices of users."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import OPTION_CONFIG, Count, Number


@dataclass(frozen=True, config=OPTION_CONFIG)
class VoiceOptions:
    """Limits of the voices of users."""

    min_seconds: Annotated[Number, Field(ge=0.2)] = 1.0
    """Minimum length of a recording, in seconds."""

    max_seconds: Annotated[Number, Field(ge=1, le=30)] = 30.0
    """Maximum length of a recording, in seconds."""

    file_bytes: Count = 10 << 20
    """Maximum size of a recording's file."""

    stored: Count = 1000
    """Maximum number of stored voices, with voices_dir."""

    stored_per_key: Count = 100
    """Maximum number of stored voices of a key."""

    cached: Count = 256
    """Number of recent recordings whose encoding is cached."""
