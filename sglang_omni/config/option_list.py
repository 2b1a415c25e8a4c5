"""Lists the options of the configuration tree, with all that is said of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from sglang_omni.config.allowed_values import describe_values
from sglang_omni.config.option_types import SERVE_ONLY
from sglang_omni.config.tree import Config


@dataclass(frozen=True)
class Option:
    """An option: a leaf of the configuration tree.

    Attributes:
        path: Dotted path.
        type: Its type, without constraints.
        values: The allowed values in words.
        default: Its default.
        description: One line about it.
        is_serve_only: Whether only `sgl-omni serve` takes it, and the Python API does not.
    """

    path: str
    type: Any
    values: str
    default: Any
    description: str
    is_serve_only: bool

    @property
    def section(self) -> str:
        """Return the path of its section, "" for an option that is in none."""
        return self.path.rpartition(".")[0]


@dataclass(frozen=True)
class OptionSection:
    """A section of the tree: a group of options. Its attributes are those of `Option`."""

    path: str
    values: str
    description: str
    is_serve_only: bool


def list_options() -> list[Option]:
    """Return every option, in the order of the tree."""
    return [node for node in _index_tree().values() if isinstance(node, Option)]


def list_sections() -> list[OptionSection]:
    """Return every section, in the order of the tree; the first has the path ""."""
    return [node for node in _index_tree().values() if isinstance(node, OptionSection)]


def list_names(section: str) -> list[str]:
    """Return the names in a section."""
    splits = (path.rpartition(".") for path in _index_tree() if path)
    return [name for parent, _, name in splits if parent == section]


def find_node(path: str) -> OptionSection | Option | None:
    """Return the option or section of a path."""
    return _index_tree().get(path)


@cache
def _index_tree() -> dict[str, OptionSection | Option]:
    return {node.path: node for node in _iterate_tree(Config, "", False)}


def _iterate_tree(
    cls: type[Any], path: str, is_serve_only: bool
) -> Iterator[OptionSection | Option]:
    """Yield a class of options as a section, then its options and sections, depth first."""
    description = (cls.__doc__ or "").split("\n\n")[0]
    yield OptionSection(path, "a mapping of options to values", description, is_serve_only)
    for name, entry in cls.__pydantic_fields__.items():
        entry_path = f"{path}.{name}" if path else name
        is_entry_serve_only = is_serve_only or SERVE_ONLY in entry.metadata
        if hasattr(entry.annotation, "__pydantic_fields__"):
            yield from _iterate_tree(entry.annotation, entry_path, is_entry_serve_only)
            continue
        yield Option(
            entry_path,
            entry.annotation,
            describe_values(entry.annotation, entry.metadata),
            entry.get_default(call_default_factory=True),
            " ".join((entry.description or "").split()),
            is_entry_serve_only,
        )
