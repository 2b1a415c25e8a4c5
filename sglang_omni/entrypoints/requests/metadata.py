"""What requests of every kind have in common: their metadata and their model."""

from dataclasses import dataclass

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.protocol.errors import ModelNotFound
from sglang_omni.queueing.policy import Priority


@dataclass(frozen=True)
class RequestMetadata:
    """The fields that `ChatRequest` and `SpeechRequest` share."""

    id: str
    tenant: str | None = None
    priority: Priority = "normal"
    timeout_s: float | None = None


def require_model(name: str, backend: Backend) -> None:
    """Check that `name` is the served model. Raises `ModelNotFound`."""
    if name != backend.model:
        raise ModelNotFound(
            f"model: no model {name!r}; this server serves {backend.model!r}", param="model"
        )
