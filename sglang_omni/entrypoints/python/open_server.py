"""Builds the engines from the arguments of the Python API."""

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.load import load_config
from sglang_omni.config.option_list import find_node
from sglang_omni.config.tree import Config
from sglang_omni.entrypoints.startup.cache_folders import prepare_home
from sglang_omni.entrypoints.startup.checkpoint import find_checkpoint
from sglang_omni.entrypoints.startup.log_folder import open_log_folder
from sglang_omni.entrypoints.startup.placement import apply_placement
from sglang_omni.entrypoints.startup.prefetch import prefetch_weights
from sglang_omni.entrypoints.startup.preflight_checks import check_config
from sglang_omni.serving.server import Server

LOGGER = logging.getLogger(__name__)


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
    prefetch_weights(config, checkpoint)
    config = replace(config, log_folder=open_log_folder(config.log_folder, "python"))
    prepare_home()
    return Server(config, checkpoint)


def read_options(model_path: str | os.PathLike[str] | None, options: Mapping[str, Any]) -> Config:
    """Return the configuration. Raises `ConfigError`, naming the option."""
    for path in _iterate_paths(options):
        node = find_node(path)
        if node is not None and node.is_serve_only:
            raise make_option_error(path, f"{path} is an option of `sgl-omni serve` only")
    chosen = {} if model_path is None else {"model_path": model_path}
    return load_config(None, {**chosen, **options})


def _iterate_paths(options: Mapping[str, Any], section: str = "") -> Iterator[str]:
    """Yield the path of each option and section that is named."""
    for name, value in options.items():
        path = f"{section}.{name}" if section else str(name)
        yield path
        if isinstance(value, Mapping):
            yield from _iterate_paths(value, path)
