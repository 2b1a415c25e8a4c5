"""Flags of the configuration: help, reference and errors say the same of each option."""

import pytest

from sglang_omni.config.load import load_config
from sglang_omni.config.option_list import Option, list_options, list_sections
from sglang_omni.entrypoints.cli.config_arguments import (
    ALIASES,
    describe_argument,
    format_default,
    to_flag,
)
from sglang_omni.entrypoints.cli.main import SAY_OPTIONS, main
from sglang_omni.entrypoints.cli.reference import render_reference
from sglang_omni.protocol.errors import ConfigError

OPTIONS = list_options()


def read_help(
    *command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """Return the help of a command, with each text on one line."""
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit) as exit_:
        main([*command, "--help"])
    assert exit_.value.code == 0
    return capsys.readouterr().out


@pytest.fixture
def serve_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    return read_help("serve", monkeypatch=monkeypatch, capsys=capsys)


def test_help_reference_and_errors_have_the_same_description(serve_help: str) -> None:
    reference = render_reference()
    for option in OPTIONS:
        assert f"{option.description} {describe_argument(option)}\n" in serve_help
        rows = [line for line in reference.splitlines() if f"| `{to_flag(option)}` |" in line]
        assert len(rows) == 1
        assert f"| {option.values} |" in rows[0]
        assert option.description in rows[0]
        with pytest.raises(ConfigError) as refused:
            load_config(None, {option.path: [[]]})
        assert option.description in refused.value.message


def test_each_flag_stands_in_the_group_of_its_section(serve_help: str) -> None:
    for section in list_sections():
        title = f"\n{section.path or 'general'}:\n"
        assert serve_help.count(title) == 1
        group = serve_help.partition(title)[2].partition("\n\n")
        if section.path:
            assert group[0].strip() == section.description
            group = group[2].partition("\n\n")
        flags = [line.split()[0] for line in group[0].splitlines() if line.startswith("  --")]
        assert flags == [to_flag(one) for one in OPTIONS if one.section == section.path]


def test_a_default_is_shown_as_a_command_line_writes_it(serve_help: str) -> None:
    by_path = {option.path: option for option in OPTIONS}
    shown = {
        "port": "8000",
        "text_only": "false",
        "drain_timeout": "30",
        "segment.first_max_wait_s": "0.45",
        "api_key": "",
        "voice": "",
        "thinker.server_args": "",
    }
    assert {path: format_default(by_path[path]) for path in shown} == shown
    assert "None" not in serve_help


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.path)
def test_a_default_is_one_that_the_option_takes(option: Option) -> None:
    if text := format_default(option):
        assert load_config(None, {option.path: text}) == load_config(None, {})


def test_names_of_sglang_omni_are_marked_as_such(serve_help: str) -> None:
    reference = render_reference()
    names = [name for aliases in ALIASES.values() for name in aliases]
    assert set(ALIASES) <= {option.path for option in OPTIONS}
    for name in names:
        assert not any(line.split()[:1] == [name] for line in serve_help.splitlines())
        assert f"`{name}`" in reference
    for option in OPTIONS:
        aliases = ALIASES.get(option.path, ())
        text = serve_help.partition(f"\n  {to_flag(option)} ")[2].partition("\n  --")[0]
        assert ("as in sglang-omni" in text) == bool(aliases)
        assert all(name in text for name in aliases)


def test_a_flag_is_not_broken_at_a_hyphen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for columns in ("80", "100", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        with pytest.raises(SystemExit):
            main(["serve", "--help"])
        assert "-\n" not in capsys.readouterr().out


def test_say_has_the_options_that_it_uses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = read_help("say", monkeypatch=monkeypatch, capsys=capsys)
    for option in OPTIONS:
        assert (option.description in text) == (option.path in SAY_OPTIONS)
