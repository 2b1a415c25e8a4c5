"""API keys: where they come from, and how a presented one is compared. Keys never leave here."""

import hmac
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from sglang_omni.protocol.errors import ConfigError

LEAST_CHARACTERS = 12
_SALT = secrets.token_bytes(16)


@dataclass(frozen=True)
class Keys:
    """Some keys, as digests. Without any, nobody is asked for one."""

    digests: tuple[bytes, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.digests)

    def match(self, presented: str) -> str | None:
        """Who presents a key: a name for its owner, the same in this process, or None.

        Every key is compared with, and each in constant time: how long it takes tells nothing.
        """
        digest, found = _digest(presented), None
        for known in self.digests:
            if hmac.compare_digest(digest, known):
                found = known.hex()
        return found

    def mark(self, presented: str) -> str | None:
        """A name for the owner of a key that outlives this process, or None."""
        return _lasting_digest(presented) if self.match(presented) else None


def read_keys(sources: Sequence[str], option: str) -> Keys:
    """Keys from `file:PATH` (one on each line, `#` begins a comment) and `env:NAME` (separated by
    commas).

    A key itself is refused: it would show in the process list and in the printed configuration.
    Raises `ConfigError`, which never quotes a key.
    """
    keys = [key for source in sources for key in _read(source, option)]
    if any(len(key) < LEAST_CHARACTERS for key in keys):
        raise ConfigError(
            f"a key of {option} has less than {LEAST_CHARACTERS} characters", param=option
        )
    return Keys(tuple(_digest(key) for key in keys))


def first_key(source: str, option: str) -> str:
    """A key to present to a server, from such a source. Raises `ConfigError`."""
    return _read(source, option)[0]


def _read(source: str, option: str) -> list[str]:
    kind, _, name = source.partition(":")
    if kind == "env" and name:
        found = os.environ.get(name, "").split(",")
    elif kind == "file" and name:
        found = _lines(Path(name), option)
    else:
        raise ConfigError(
            f"{option} takes file:PATH or env:NAME, not a key itself, which the process list "
            "would show",
            param=option,
        )
    keys = [key.strip() for key in found if key.strip()]
    if not keys:
        raise ConfigError(f"{option}: there is no key in {source}", param=option)
    return keys


def _lines(file: Path, option: str) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{option}: cannot read {file}: {type(error).__name__}") from None
    return [line.partition("#")[0] for line in text.splitlines()]


def _digest(key: str) -> bytes:
    # Salted, so that not even a digest of a key means anything outside this process.
    return blake2b(key.encode(errors="surrogateescape"), key=_SALT, digest_size=16).digest()


def _lasting_digest(key: str) -> str:
    # A key is long and random: its digest can be written down without giving it away.
    return blake2b(
        key.encode(errors="surrogateescape"), person=b"owner", digest_size=16
    ).hexdigest()
