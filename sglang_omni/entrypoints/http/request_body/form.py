"""`multipart/form-data` bodies: validated text fields and one file."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from sglang_omni.entrypoints.http.request_body.reader import LARGE_BODY_KEY
from sglang_omni.protocol.body import FormBody
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.unicode import NOT_UNICODE, is_unicode

Fields = TypeVar("Fields", bound=FormBody)


async def read_form(
    request: Request, model: type[Fields], files: Sequence[str]
) -> tuple[Fields, bytes]:
    """Return the validated text fields of a form and the bytes of its one file.

    Args:
        request: The request to read.
        model: The model of the text fields.
        files: Accepted names of the file field. Errors use the first one.

    Raises:
        InvalidRequest: A field is missing, repeated or unknown; the error names it.
    """
    content_type = request.headers.get("content-type", "")
    if not content_type.lower().startswith("multipart/form-data"):
        raise InvalidRequest("the body must be of type multipart/form-data")
    async with request.form(max_files=2, max_fields=64) as form:
        if (held_body := getattr(request.state, LARGE_BODY_KEY, None)) is not None:
            held_body.take()  # The form has its own copy.
        texts: dict[str, Any] = {}
        uploads: list[UploadFile] = []
        for name, value in form.multi_items():
            if not is_unicode(name):
                raise InvalidRequest(f"a field name {NOT_UNICODE}")
            if name in files:
                uploads.append(_require_file(name, value))
            elif name in texts:
                raise InvalidRequest(f"{name}: is given twice", param=name)
            else:
                texts[name] = _require_text(name, value)
        fields = _validate(model, texts)
        if len(uploads) != 1:
            reason = "is missing" if not uploads else "is given twice"
            raise InvalidRequest(f"{files[0]}: the file {reason}", param=files[0])
        return fields, await uploads[0].read()


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


def _validate(model: type[Fields], texts: dict[str, Any]) -> Fields:
    try:
        return model.model_validate(texts)
    except ValidationError as error:
        errors = [{**detail, "loc": ("body", *detail["loc"])} for detail in error.errors()]
        raise RequestValidationError(errors) from None
