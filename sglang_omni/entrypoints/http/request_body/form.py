"""`multipart/form-data` bodies: validated text fields and one file."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import Request
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.entrypoints.http.request_body.budget import MAX_FORM_MEMORY_BYTES
from sglang_omni.entrypoints.http.request_body.ignored_fields import note_ignored_fields
from sglang_omni.entrypoints.http.request_body.reader import FORM_TYPE, LARGE_BODY_KEY
from sglang_omni.entrypoints.requests.validation import to_invalid_request
from sglang_omni.protocol.body import FormBody
from sglang_omni.protocol.compat.adapt import adapt
from sglang_omni.protocol.compat.field_rules import FieldRules
from sglang_omni.protocol.errors import BodyCapacityReached, InvalidRequest
from sglang_omni.protocol.unicode import NOT_UNICODE, is_unicode

Fields = TypeVar("Fields", bound=FormBody)
# OpenAI's clients append it to the names of lists, and send a field for each element.
LIST_SUFFIX = "[]"
_NO_RULES = FieldRules(frozenset())


async def read_form(
    request: Request, model: type[Fields], files: Sequence[str], rules: FieldRules | None = None
) -> tuple[Fields, bytes]:
    """Return the validated text fields of a form and the bytes of its one file.

    Args:
        request: The request to read.
        model: The model of the text fields.
        files: Accepted names of the file field. Errors use the first one.
        rules: Rules for fields of other programs.

    Raises:
        InvalidRequest: A field is missing, repeated or unknown; the error names it.
    """
    async with _parse_form(request, model, files, rules) as (fields, uploads):
        return fields, await uploads[0].read()


async def read_files_form(
    request: Request,
    model: type[Fields],
    files: Sequence[str],
    rules: FieldRules | None = None,
    *,
    max_files: int,
) -> tuple[Fields, list[bytes]]:
    """Return the same, with the bytes of one or several files. See `read_form`."""
    async with _parse_form(request, model, files, rules, max_files) as (fields, uploads):
        return fields, [await upload.read() for upload in uploads]


async def open_form(
    request: Request, model: type[Fields], files: Sequence[str], rules: FieldRules | None = None
) -> tuple[Fields, SharedDescriptor]:
    """Return the same, with the file on disk, a small one in memory. See `read_form`.

    Raises:
        BodyCapacityReached: The disk is full.
    """
    async with _parse_form(request, model, files, rules) as (fields, uploads):
        return fields, await asyncio.to_thread(_to_descriptor, uploads[0])


def _to_descriptor(upload: UploadFile) -> SharedDescriptor:
    file = upload.file
    try:
        # What the parser still has in memory stays there, so that a full disk does not matter.
        if upload.size is not None and upload.size <= MAX_FORM_MEMORY_BYTES:
            file.seek(0)
            return SharedDescriptor.create_in_memory(file.read())
        file.rollover()  # type: ignore[attr-defined]
        return SharedDescriptor(os.dup(file.fileno()))
    except OSError as error:
        raise BodyCapacityReached(f"the upload cannot be kept: {error.strerror}") from error


@asynccontextmanager
async def _parse_form(
    request: Request,
    model: type[Fields],
    files: Sequence[str],
    rules: FieldRules | None,
    max_files: int = 1,
) -> AsyncIterator[tuple[Fields, list[UploadFile]]]:
    """Parse a form. Its files are closed at the end of the context."""
    content_type = request.headers.get("content-type", "")
    if not content_type.lower().startswith(FORM_TYPE):
        raise InvalidRequest(f"the body must be of type {FORM_TYPE}")
    async with request.form(max_files=max_files + 1, max_fields=64) as form:
        if (held_body := getattr(request.state, LARGE_BODY_KEY, None)) is not None:
            held_body.release()  # The form has its own copy.
        texts: dict[str, Any] = {}
        uploads: list[UploadFile] = []
        for name, value in form.multi_items():
            if not is_unicode(name):
                raise InvalidRequest(f"a field name {NOT_UNICODE}")
            if name in files:
                uploads.append(_require_file(name, value))
            elif isinstance(value, UploadFile) and rules is not None and name in rules.names:
                texts[name] = value.filename or name  # The rule decides on the file.
            else:
                _add_text(texts, name, _require_text(name, value), rules or _NO_RULES)
        if rules is not None:
            adapted = adapt(rules, texts)
            note_ignored_fields(request, adapted.ignored)
            texts = adapted.fields
        fields = _validate(model, texts, rules)
        if not 1 <= len(uploads) <= max_files:
            repeated = "is given twice" if max_files == 1 else f"is given over {max_files} times"
            reason = repeated if uploads else "is missing"
            raise InvalidRequest(f"{files[0]}: the file {reason}", param=files[0])
        yield fields, uploads


def _add_text(texts: dict[str, Any], name: str, text: str, rules: FieldRules) -> None:
    """Add a field to `texts`. Raises `InvalidRequest` if it is there already."""
    list_name = name.removesuffix(LIST_SUFFIX)
    parent, _, rest = name.partition("[")
    if list_name in rules.lists:
        entries = texts.setdefault(list_name, [])
        if text:  # An empty list is sent as one entry without text, by /docs for instance.
            entries.append(text)
    elif parent in rules.objects and rest.endswith("]"):
        fields = texts.setdefault(parent, {})
        if not isinstance(fields, dict):
            raise InvalidRequest(f"{parent}: is given twice", param=parent)
        _add_text(fields, rest[:-1], text, _NO_RULES)
    elif name in texts:
        raise InvalidRequest(f"{name}: is given twice", param=name)
    else:
        texts[name] = text


def document_form(model: type[FormBody], file: str, example: Mapping[str, str]) -> dict[str, Any]:
    """Return a route's `openapi_extra` for a form body.

    Args:
        model: The model of the text fields.
        file: Name of the file field.
        example: Example values of some text fields.
    """
    schema = model.model_json_schema()
    fields = {
        name: _to_form_field(field_schema) for name, field_schema in schema["properties"].items()
    }
    for name, value in example.items():
        fields[name]["example"] = value
    properties = {file: {"type": "string", "format": "binary"}, **fields}
    required = [file, *schema.get("required", [])]
    form_schema = {"type": "object", "properties": properties, "required": required}
    content = {"multipart/form-data": {"schema": form_schema}}
    return {"requestBody": {"required": True, "content": content}}


def _to_form_field(field_schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field without `null`, which a form cannot express."""
    types = [entry for entry in field_schema.pop("anyOf", ()) if entry != {"type": "null"}]
    if field_schema.get("default", "") is None:
        del field_schema["default"]
    return {**field_schema, **(types[0] if len(types) == 1 else {"anyOf": types} if types else {})}


def _require_file(name: str, value: object) -> UploadFile:
    if not isinstance(value, UploadFile):
        raise InvalidRequest(f"{name}: must be a file", param=name)
    return value


def _require_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{name}: must be text", param=name)
    # The client chooses the encoding, and some encodings allow lone surrogates.
    if not is_unicode(value):
        raise InvalidRequest(f"{name}: {NOT_UNICODE}", param=name)
    return value


def _validate(model: type[Fields], texts: dict[str, Any], rules: FieldRules | None) -> Fields:
    try:
        return model.model_validate(texts)
    except ValidationError as error:
        errors = [{**detail, "loc": ("body", *detail["loc"])} for detail in error.errors()]
        raise to_invalid_request(errors, rules) from None
