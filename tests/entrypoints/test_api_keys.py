"""Where keys come from, and that they show nowhere."""

from pathlib import Path

import pytest

from sglang_omni.entrypoints.api_keys import read_keys
from sglang_omni.protocol.errors import ConfigError

FIRST, SECOND, THIRD = "first-key-of-them", "second-key-of-them", "third-key-of-them"


def test_keys_come_from_files_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# ours\n{FIRST}\n\n{SECOND}  # of the other team\n", encoding="utf-8")
    monkeypatch.setenv("KEYS", f"{THIRD}, ")
    keys = read_keys((f"file:{file}", "env:KEYS"), "api_key")
    owners = {keys.match(key) for key in (FIRST, SECOND, THIRD)}
    assert len(owners) == 3
    assert None not in owners
    assert keys.match(FIRST) == keys.match(FIRST)
    assert keys.match(FIRST + "x") is None
    assert keys.match("") is None
    assert not any(key in repr(keys) for key in (FIRST, SECOND, THIRD))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (FIRST, "the process list"),
        ("env:", "the process list"),
        ("env:NOWHERE", "no key in env:NOWHERE"),
        ("file:/nowhere/keys", "cannot read /nowhere/keys: FileNotFoundError"),
        ("env:SHORT", "fewer than 12 characters"),
    ],
)
def test_a_source_without_a_usable_key_is_refused_and_no_key_is_quoted(
    source: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT", "tiny-key")
    with pytest.raises(ConfigError, match=reason) as refused:
        read_keys((source,), "api_key")
    assert FIRST not in refused.value.message
    assert "tiny-key" not in refused.value.message


def test_without_sources_there_are_no_keys() -> None:
    keys = read_keys((), "api_key")
    assert not keys
    assert keys.match(FIRST) is None
