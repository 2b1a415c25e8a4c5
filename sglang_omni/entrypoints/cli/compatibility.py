"""Renders the part of the reference about names and fields of other programs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from sglang_omni.entrypoints.cli.markdown_table import render_table
from sglang_omni.entrypoints.realtime.field_rules import EVENT_RULES
from sglang_omni.protocol.compat.adapt import iterate_rules
from sglang_omni.protocol.compat.chat import CHAT_RULES
from sglang_omni.protocol.compat.completions import COMPLETION_RULES
from sglang_omni.protocol.compat.field_rules import FieldRules, Ignored, Mapped, Refused, Rule
from sglang_omni.protocol.compat.images import EDIT_RULES, GENERATION_RULES
from sglang_omni.protocol.compat.model_names import WELL_KNOWN_MODELS
from sglang_omni.protocol.compat.responses import CREATE_RESPONSE_RULES
from sglang_omni.protocol.compat.speech import SPEECH_RULES
from sglang_omni.protocol.compat.tokenization import TOKENIZE_RULES
from sglang_omni.protocol.compat.transcription import TRANSCRIPTION_RULES
from sglang_omni.protocol.compat.voice_names import OPENAI_VOICES

NAMES_INTRODUCTION = """A request may name the served model by these names as well, with or without
a date at the end (`gpt-4o-mini-2024-07-18`). Names that the operator gives come first;
`--strict-names` turns the others off. An answer has the name that its request used.
`GET /v1/models` lists the operator's names alone.
"""
VOICES_INTRODUCTION = """OpenAI's voices are spoken by the checkpoint's presets, dealt out in this
order: the first name has the first preset, the second name the second, and so on, then again from
the first. A preset, a stored voice or a `--voice-alias` of that name comes first.
`--strict-names` turns the names off. `GET /v1/audio/voices` lists them as `aliases`.
"""
FIELDS_INTRODUCTION = """Fields that the bodies above do not have. *Read as* names the server's own
field, which comes first if both are sent. *Ignored* fields have no effect; the header
`X-Ignored-Fields` of the answer lists them, except where they have the value in parentheses, which
asks for nothing. A Realtime session lists them in `session.updated`, as `ignored_fields`. With
`--strict-fields` they are refused. *Refused* fields are errors, because the answer would not be
what they ask for. Every other field is an error that names the nearest known one.
"""
_BODIES: tuple[tuple[str, FieldRules], ...] = (
    ("Chat", CHAT_RULES),
    ("Response", CREATE_RESPONSE_RULES),
    ("Text completion", COMPLETION_RULES),
    # Its messages and tools are those of chats.
    ("Tokenization", replace(TOKENIZE_RULES, nested={})),
    ("Speech", SPEECH_RULES),
    ("Transcription", TRANSCRIPTION_RULES),
    ("Image", GENERATION_RULES),
    ("Image edit", EDIT_RULES),
    ("Realtime events", EVENT_RULES),
)


def render_compatibility() -> Iterator[str]:
    """Yield the text and the tables."""
    yield "\n## Names of OpenAI's models and voices\n"
    yield NAMES_INTRODUCTION
    models = ((kind, _join_code(names)) for kind, names in WELL_KNOWN_MODELS.items())
    yield render_table(("Used for", "Names"), models)
    yield VOICES_INTRODUCTION
    yield f"{_join_code(OPENAI_VOICES)}\n"
    yield "\n## Fields of other programs\n"
    yield FIELDS_INTRODUCTION
    for title, rules in _BODIES:
        yield f"\n### {title}: fields of other programs\n"
        yield render_table(("Field", "Of", "What is done"), _render_rules(rules))


def _render_rules(rules: FieldRules) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each run of fields of which the same is said."""
    rows = ((path, rule.origin, _describe(rule)) for path, rule in iterate_rules(rules))
    for (origin, text), run in groupby(rows, lambda row: row[1:]):
        yield _join_code(tuple(path for path, *_ in run)), origin, text


def _describe(rule: Rule) -> str:
    match rule:
        case Mapped(meaning=meaning):
            return f"Read as {meaning}"
        case Refused(reason=reason):
            return f"Refused: {reason}"
        case Ignored(reason=reason, neutral=neutral):
            return f"Ignored{_describe_neutral(neutral)}: {reason}"


def _describe_neutral(values: tuple[Any, ...]) -> str:
    return f" ({', '.join(f'`{json.dumps(value)}`' for value in values)})" if values else ""


def _join_code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
