"""Reads the names of the served model from the configuration."""

from collections.abc import Sequence

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.tree import Config
from sglang_omni.protocol.compat.model_names import ModelNames, build_model_names

FIELD = "model_alias"


def read_model_names(config: Config) -> ModelNames:
    """Return the names of the served model. Raises `ConfigError` for an invalid alias."""
    served = config.served_model_name
    aliases = parse_model_aliases(config.model_alias, served)
    return build_model_names(served, aliases, strict=config.strict_names)


def parse_model_aliases(entries: Sequence[str], served: Sequence[str]) -> dict[str, str]:
    """Return the served name of each alias, from entries ALIAS=NAME.

    Raises `ConfigError` for an invalid entry, an alias that is given twice or is itself a served
    name, and a name that is not served.
    """
    aliases: dict[str, str] = {}
    for entry in entries:
        alias, _, name = (part.strip() for part in entry.partition("="))
        if not alias or not name:
            raise _make_error(f"{entry!r} is not of the form ALIAS=NAME")
        if alias in aliases or alias in served:
            raise _make_error(f"{alias!r} has two meanings")
        if name not in served:
            raise _make_error(f"{name!r} is not served; served are: {', '.join(served)}")
        aliases[alias] = name
    return aliases


def _make_error(reason: str) -> Exception:
    return make_option_error(FIELD, f"{FIELD}: {reason}")
