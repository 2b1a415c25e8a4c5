"""Which implementation evaluates the diffusion transformer."""

from typing import Literal, cast, get_args

from sglang_omni.protocol.errors import ConfigError

Backend = Literal["auto", "reference", "fast"]


def select_backend(backend: str, device: str, *, fp8: bool) -> Backend:
    """Return "fast" or "reference" (diffusers' class).

    "auto" takes the fast one on a GPU and for FP8, which the other one has not.

    Raises:
        ConfigError: There is no such back end, or it has no FP8.
    """
    if backend not in get_args(Backend):
        names = ", ".join(get_args(Backend))
        raise ConfigError(f"image back end {backend!r} is not one of {names}")
    if backend == "auto":
        backend = "fast" if fp8 or device.startswith("cuda") else "reference"
    if fp8 and backend != "fast":
        raise ConfigError("FP8 needs the fast image back end: set it to 'auto' or 'fast'")
    return cast(Backend, backend)
