"""What requests of every kind have in common: their metadata and their model."""

from dataclasses import dataclass

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.protocol.errors import ModelNotFound
from sglang_omni.queueing.policy import Priority

# Longer names of models are cut in messages.
MAX_SHOWN_CHARACTERS = 100


@dataclass(frozen=True)
class RequestMetadata:
    """The fields that `ChatRequest` and `SpeechRequest` share."""

    id: str
    tenant: str | None = None
    priority: Priority = "normal"
    timeout_s: float | None = None


def require_model(name: str | None, backend: Backend) -> str:
    """Return the name of the model for the answer: the request's, or the main one for None.

    Raises `ModelNotFound` if it is not a name of the served model.
    """
    names = backend.model_names
    if name is None:
        return names.main
    if names.find(name) is None:
        served = ", ".join(map(repr, names.served))
        shown = name[:MAX_SHOWN_CHARACTERS]
        raise ModelNotFound(
            f"model: no model {shown!r}; this server serves {served}", param="model"
        )
    return name
