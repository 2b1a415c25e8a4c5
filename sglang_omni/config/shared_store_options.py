"""Options of the store of clients' state that several servers share."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import OPTION_CONFIG, LocalPath, Number, Text


@dataclass(frozen=True, config=OPTION_CONFIG)
class SharedStoreOptions:
    """Redis for stored responses, transcripts of spoken answers and URLs of images."""

    url: Text | None = None
    """Redis that servers share, redis://HOST:PORT/DATABASE or rediss:// for TLS; unset: each server
    keeps its own state."""

    username: Text | None = None
    """User of Redis; unset: its default one."""

    password: Text | None = None
    """Source of the password, file:PATH or env:NAME; unset: none."""

    key_prefix: Annotated[Text, Field(min_length=1)] = "sgl-omni"
    """Prefix of every key; servers with the same one share their state."""

    timeout_s: Annotated[Number, Field(ge=0.05)] = 1.0
    """Time limit for reading or writing an entry, in seconds."""

    tls_ca: LocalPath | None = None
    """Authority that signed the certificate of Redis; unset: those of the system."""

    tls_certificate: LocalPath | None = None
    """Certificate to present to Redis, with tls_key; unset: none."""

    tls_key: LocalPath | None = None
    """Private key of tls_certificate; unset: none."""
