"""Builds the errors about options: what is wrong, and what the option is."""

from sglang_omni.config.option_list import find_node, list_names
from sglang_omni.protocol.errors import ConfigError


def make_option_error(path: str, problem: str) -> ConfigError:
    """Return the error for an option or a section.

    Args:
        path: Its dotted path.
        problem: What is wrong. It names the path, and has no period at the end.
    """
    node = find_node(path)
    description = f". {path}: {node.description}" if node else ""
    return ConfigError(problem + description, param=path)


def make_value_error(path: str, value: object) -> ConfigError:
    """Return the error for a value that an option or a section does not allow."""
    node = find_node(path)
    assert node is not None, path
    return make_option_error(path, f"{path} must be {node.values}, not {value!r}")


def make_unknown_key_error(section: str, name: str) -> ConfigError:
    """Return the error for a name that is neither an option nor a section of `section`."""
    path = f"{section}.{name}" if section else name
    known = ", ".join(list_names(section))
    return ConfigError(f"unknown key {path!r}; known keys: {known}", param=path)
