"""The version of the installed package."""

from importlib.metadata import version

PACKAGE = "sglang_omni"


def package_version() -> str:
    """Return the version in the package's metadata, such as "0.1.0"."""
    return version(PACKAGE)
