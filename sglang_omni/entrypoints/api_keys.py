"""API keys: read from files or the environment, and compared as digests only."""

import hmac
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from sglang_omni.protocol.errors import ConfigError

MIN_KEY_CHARACTERS = 12
_SALT = secrets.token_bytes(16)


@dataclass(frozen=True)
class Keys:
    """A set of keys as digests. If it is empty, no key is required."""

    digests: tuple[bytes, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.digests)

    def match(self, presented: str) -> str | None:
        """Return an id of the key's owner that is valid in this process, or None if unknown.

        The presented key is compared with all keys in constant time, so that the time reveals
        nothing.
        """
        digest, owner = _digest(presented), None
        for known_digest in self.digests:
            if hmac.compare_digest(digest, known_digest):
                owner = known_digest.hex()
        return owner

    def derive_owner_id(self, presented: str) -> str | None:
        """Return an id of the key's owner that survives restarts, or None if unknown."""
        return _persistent_digest(presented) if self.match(presented) else None


def read_keys(sources: Sequence[str], option: str) -> Keys:
    """Read keys from `file:PATH` (one per line, `#` starts a comment) or `env:NAME` (with commas).

    A key itself is rejected, because it would show in the process list and in the printed
    configuration.

    Args:
        sources: Sources of keys.
        option: Name of the option, for errors.

    Raises:
        ConfigError: A source is invalid or has no key. The message never quotes a key.
    """
    keys = [key for source in sources for key in _read_source(source, option)]
    if any(len(key) < MIN_KEY_CHARACTERS for key in keys):
        raise ConfigError(
            f"a key of {option} has fewer than {MIN_KEY_CHARACTERS} characters", param=option
        )
    return Keys(tuple(_digest(key) for key in keys))


def read_first_key(source: str, option: str) -> str:
    """Return the first key of a source, to present to a server. Raises `ConfigError`."""
    return _read_source(source, option)[0]


def _read_source(source: str, option: str) -> list[str]:
    kind, _, name = source.partition(":")
    if kind == "env" and name:
        candidates = os.environ.get(name, "").split(",")
    elif kind == "file" and name:
        candidates = _read_lines(Path(name), option)
    else:
        raise ConfigError(
            f"{option} takes file:PATH or env:NAME, not a key itself, which the process list "
            "would show",
            param=option,
        )
    keys = [key.strip() for key in candidates if key.strip()]
    if not keys:
        raise ConfigError(f"{option}: there is no key in {source}", param=option)
    return keys


def _read_lines(file: Path, option: str) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{option}: cannot read {file}: {type(error).__name__}") from None
    return [line.partition("#")[0] for line in text.splitlines()]


def _digest(key: str) -> bytes:
    # Salted, so that the digest of a key is useless outside this process.
    return blake2b(key.encode(errors="surrogateescape"), key=_SALT, digest_size=16).digest()


def _persistent_digest(key: str) -> str:
    # A key is long and random, so its unsalted digest may be stored.
    return blake2b(
        key.encode(errors="surrogateescape"), person=b"owner", digest_size=16
    ).hexdigest()
