"""Other names for preset voices, for clients that can only say some names of their own."""

from collections.abc import Mapping, Sequence

from sglang_omni.protocol.errors import ConfigError
from sglang_omni.voices.registry import DEFAULT_VOICE, NAME

FIELD = "voice_alias"


def read_aliases(entries: Sequence[str]) -> dict[str, str]:
    """What each alias stands for, from entries ALIAS=PRESET. Raises `ConfigError`."""
    aliases: dict[str, str] = {}
    for entry in entries:
        alias, sign, preset = entry.partition("=")
        if not sign or not preset or not NAME.fullmatch(alias) or alias == DEFAULT_VOICE:
            raise ConfigError(f"{FIELD}: {entry!r} is not ALIAS=PRESET", param=FIELD)
        if alias in aliases:
            raise ConfigError(f"{FIELD}: {alias!r} stands for two voices", param=FIELD)
        aliases[alias] = preset
    return aliases


def check_aliases(aliases: Mapping[str, str], presets: Sequence[str]) -> None:
    """Raises `ConfigError` for an alias of no preset, or one that hides a preset."""
    for alias, preset in aliases.items():
        if preset not in presets:
            raise ConfigError(
                f"{FIELD}: {preset!r} is not in the checkpoint; it has: {', '.join(presets)}",
                param=FIELD,
            )
        if alias in presets:
            raise ConfigError(f"{FIELD}: {alias!r} is itself a preset", param=FIELD)
