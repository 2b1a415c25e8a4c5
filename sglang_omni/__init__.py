"""A server for omni-modal models, and its Python API."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sglang_omni.entrypoints.python.async_omni import AsyncOmni
    from sglang_omni.entrypoints.python.omni import Omni

    __version__: str

__all__ = ["AsyncOmni", "Omni", "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that engines and commands do not load all of them."""
    if name == "__version__":
        from sglang_omni.version import package_version

        return package_version()
    if name == "Omni":
        from sglang_omni.entrypoints.python.omni import Omni

        return Omni
    if name == "AsyncOmni":
        from sglang_omni.entrypoints.python.async_omni import AsyncOmni

        return AsyncOmni
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
