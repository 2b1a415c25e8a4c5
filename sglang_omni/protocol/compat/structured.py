"""Schemas of answers in the forms of vLLM and SGLang."""

import json
from collections.abc import Mapping
from typing import Any

from sglang_omni.protocol.compat.conversions import make_error
from sglang_omni.protocol.compat.field_rules import Change, Fields, Refused
from sglang_omni.protocol.compat.reasons import BOTH_ENGINES, SGLANG, VLLM
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.unicode import NOT_UNICODE, check_unicode

_ONLY_SCHEMAS = "only JSON schemas are supported; use response_format"

REFUSED = (
    Refused("guided_regex", VLLM, _ONLY_SCHEMAS, ("",)),
    Refused("guided_choice", VLLM, _ONLY_SCHEMAS, ([],)),
    Refused("guided_grammar", VLLM, _ONLY_SCHEMAS, ("",)),
    Refused("structural_tag", BOTH_ENGINES, _ONLY_SCHEMAS, ("",)),
    Refused("regex", SGLANG, _ONLY_SCHEMAS, ("",)),
    Refused("ebnf", SGLANG, _ONLY_SCHEMAS, ("",)),
)


def convert_guided_json(value: Any, fields: Fields) -> Change:
    """Convert vLLM's `guided_json`, a schema or its text."""
    return _to_response_format("guided_json", value, fields)


def convert_structured_outputs(value: Any, fields: Fields) -> Change:
    """Convert vLLM's `structured_outputs`, an object with one kind of constraint."""
    if not isinstance(value, Mapping):
        raise make_error("structured_outputs", "must be a JSON object")
    given = {name: item for name, item in value.items() if item is not None}
    schema, wants_object = given.pop("json", None), given.pop("json_object", False)
    if given.keys() & {"regex", "choice", "grammar", "structural_tag"}:
        raise make_error("structured_outputs", _ONLY_SCHEMAS)
    if schema is not None:
        return _to_response_format("structured_outputs", schema, fields)
    is_set = fields.get("response_format") is not None or not wants_object
    return Change({} if is_set else {"response_format": {"type": "json_object"}})


def _to_response_format(name: str, schema: Any, fields: Fields) -> Change:
    if isinstance(schema, str):
        schema = _parse_schema(name, schema)
    if fields.get("response_format") not in (None, {"type": "text"}):
        raise make_error(name, "cannot be combined with response_format")
    named = {"name": name, "schema": schema}
    return Change({"response_format": {"type": "json_schema", "json_schema": named}})


def _parse_schema(name: str, text: str) -> Any:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        raise make_error(name, "must be a JSON schema, or its text") from None
    try:
        # The text may escape what the body may not.
        check_unicode(schema)
    except InvalidRequest:
        raise make_error(name, NOT_UNICODE) from None
    return schema


def rewrite_response_format(fields: Fields) -> Fields:
    """Return llama.cpp's object with a `schema` as OpenAI's."""
    if fields.get("type") == "json_object" and isinstance(fields.get("schema"), Mapping):
        named = {"name": "schema", "schema": fields["schema"]}
        return {"type": "json_schema", "json_schema": named}
    return fields
