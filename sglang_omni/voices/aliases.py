"""Aliases of preset voices, for clients that can send only their own voice names."""

from collections.abc import Mapping, Sequence

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.voices.registry import DEFAULT_VOICE, NAME_PATTERN

FIELD = "voice_alias"


def parse_aliases(entries: Sequence[str]) -> dict[str, str]:
    """Return the preset of each alias, from entries ALIAS=PRESET.

    Raises `ConfigError` for an invalid entry or an alias that is given twice.
    """
    aliases: dict[str, str] = {}
    for entry in entries:
        alias, sign, preset = entry.partition("=")
        if not sign or not preset or not NAME_PATTERN.fullmatch(alias) or alias == DEFAULT_VOICE:
            raise make_option_error(FIELD, f"{FIELD}: {entry!r} is not of the form ALIAS=PRESET")
        if alias in aliases:
            raise make_option_error(FIELD, f"{FIELD}: the alias {alias!r} has two voices")
        aliases[alias] = preset
    return aliases


def validate_aliases(aliases: Mapping[str, str], presets: Sequence[str]) -> None:
    """Raise `ConfigError` for an alias of an unknown preset, or one that hides a preset."""
    for alias, preset in aliases.items():
        if preset not in presets:
            raise make_option_error(
                FIELD,
                f"{FIELD}: {preset!r} is not in the checkpoint; it has: {', '.join(presets)}",
            )
        if alias in presets:
            raise make_option_error(FIELD, f"{FIELD}: {alias!r} is itself a preset")
