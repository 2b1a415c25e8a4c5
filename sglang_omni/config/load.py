"""Reads the configuration from a YAML file and from overrides, and writes it as YAML."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from sglang_omni.config.config_errors import (
    make_option_error,
    make_unknown_key_error,
    make_value_error,
)
from sglang_omni.config.option_list import Option, find_node
from sglang_omni.config.tree import Config
from sglang_omni.protocol.errors import ConfigError

_CONFIG = TypeAdapter(Config)


def load_config(file: Path | None, overrides: Mapping[str, Any]) -> Config:
    """Read a YAML file if given, and apply `overrides` by dotted path.

    Raises:
        ConfigError: A key or value is invalid; `param` names the key.
    """
    values = _read_yaml(file) if file else {}
    for path, value in overrides.items():
        _set_by_path(values, path, value)
    try:
        return _CONFIG.validate_python(values)
    except ValidationError as error:
        raise _make_error(values, error.errors()[0]["loc"]) from None
    except ConfigError as error:
        # Options that contradict each other.
        raise make_option_error(error.param, error.message) if error.param else error from None


def to_yaml(config: Config) -> str:
    """Return the resolved configuration as YAML that `load_config` can read."""
    content = _CONFIG.dump_python(config, mode="json")
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{file} must contain a mapping")
    return content


def _set_by_path(values: dict[str, Any], path: str, value: Any) -> None:
    """Set a leaf of nested mappings by its dotted path. The mappings on the way are copied."""
    *sections, leaf = path.split(".")
    for section in sections:
        below = values.get(section, {})
        if not isinstance(below, Mapping):
            raise ConfigError(f"{section} must be a mapping, not {below!r}", param=section)
        values[section] = dict(below)
        values = values[section]
    values[leaf] = dict(value) if isinstance(value, Mapping) else value


def _make_error(values: Mapping[str, Any], location: tuple[int | str, ...]) -> ConfigError:
    """Return the error for the key or the value at a location.

    An error within an option, as in an entry of a list, is one of the option.
    """
    path, value = "", values
    for key in location:
        name = str(key)
        entry_path = f"{path}.{name}" if path else name
        node = find_node(entry_path)
        if node is None or not name or "." in name:
            return make_unknown_key_error(path, name)
        path, value = entry_path, value[name]
        if isinstance(node, Option):
            break
    return make_value_error(path, value)
