"""Builds the engines from the arguments of the Python API."""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sglang_omni.config.load import load_config
from sglang_omni.config.tree import Config
from sglang_omni.entrypoints.startup.cache_folders import prepare_home
from sglang_omni.entrypoints.startup.checkpoint import find_checkpoint
from sglang_omni.entrypoints.startup.log_folder import open_log_folder
from sglang_omni.entrypoints.startup.placement import apply_placement
from sglang_omni.entrypoints.startup.preflight_checks import check_config
from sglang_omni.protocol.errors import ConfigError
from sglang_omni.serving.server import Server

LOGGER = logging.getLogger(__name__)

# Options of the configuration tree that are about HTTP or the log of the `serve` command.
HTTP_ONLY = frozenset(
    {
        "host",
        "port",
        "max_body_bytes",
        "drain_timeout",
        "unread_bytes",
        "unread_timeout",
        "api_key",
        "admin_api_key",
        "cors_origin",
        "allowed_host",
        "tls_certificate",
        "tls_key",
        "tls_client_ca",
        "log_level",
        "log_format",
        "audit_log",
        "otlp_endpoint",
        "profile_folder",
        "http",
        "rate_limit",
        "realtime",
    }
)


def open_server(model_path: str | os.PathLike[str] | None, options: Mapping[str, Any]) -> Server:
    """Return the engines of a checkpoint, not started.

    Args:
        model_path: Folder of the checkpoint; None for Ming-mini, which is part of the package.
        options: Options of the configuration tree; those of a section as a mapping.

    Raises:
        ConfigError: An option is invalid; `param` names it.
        StartupError: The checkpoint cannot be used.
    """
    config = read_options(model_path, options)
    check_config(config)
    checkpoint = find_checkpoint(config.model_path)
    config, plan = apply_placement(config, checkpoint)
    if plan:
        LOGGER.info("%s", plan)
    config = replace(config, log_folder=open_log_folder(config.log_folder, "python"))
    prepare_home()
    return Server(config, checkpoint)


def read_options(model_path: str | os.PathLike[str] | None, options: Mapping[str, Any]) -> Config:
    """Return the configuration. Raises `ConfigError`, naming the option."""
    for name in options:
        if name.partition(".")[0] in HTTP_ONLY:
            raise ConfigError(f"{name} is an option of `sgl-omni serve` only", param=name)
    path = {} if model_path is None else {"model_path": os.fspath(model_path)}
    return load_config(None, {**path, **_to_yaml_types(options)})


def _to_yaml_types(value: Any) -> Any:
    """Return a value with tuples as lists and paths as text, as YAML has them."""
    if isinstance(value, Mapping):
        return {name: _to_yaml_types(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_yaml_types(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value
