"""Bodies of `multipart/form-data`: text fields checked like any other body, and files."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.datastructures import UploadFile

from sglang_omni.entrypoints.http.request_body.reader import LARGE_BODY
from sglang_omni.entrypoints.unicode import REASON
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.unicode import is_unicode


class FormBody(BaseModel):
    """Base of the text fields of a form: unknown ones are refused, numbers come as text."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


Fields = TypeVar("Fields", bound=FormBody)


async def read_form(
    request: Request, model: type[Fields], files: Sequence[str]
) -> tuple[Fields, bytes]:
    """The text fields of a form, and its one file; any of `files` may name it.

    Raises `InvalidRequest`, naming the field, for what is missing, doubled or unknown.
    """
    kind = request.headers.get("content-type", "")
    if not kind.lower().startswith("multipart/form-data"):
        raise InvalidRequest("the body must be of type multipart/form-data")
    async with request.form(max_files=2, max_fields=64) as form:
        if (held := getattr(request.state, LARGE_BODY, None)) is not None:
            held.take()  # The form has a copy of it.
        texts: dict[str, Any] = {}
        found: list[UploadFile] = []
        for name, value in form.multi_items():
            if not is_unicode(name):
                raise InvalidRequest(f"the name of a field {REASON}")
            if name in files:
                found.append(_require_file(name, value))
            elif name in texts:
                raise InvalidRequest(f"{name}: is given twice", param=name)
            else:
                texts[name] = _require_text(name, value)
        fields = _validated(model, texts)
        if len(found) != 1:
            what = "is missing" if not found else "is given twice"
            raise InvalidRequest(f"{files[0]}: the file {what}", param=files[0])
        return fields, await found[0].read()


def form_schema(model: type[FormBody], file: str, example: Mapping[str, str]) -> dict[str, Any]:
    """Document such a body with `example` values of some fields; for `openapi_extra` of a route."""
    schema = model.model_json_schema()
    fields = {name: _as_form_field(about) for name, about in schema["properties"].items()}
    for name, value in example.items():
        fields[name]["example"] = value
    properties = {file: {"type": "string", "format": "binary"}, **fields}
    required = [file, *schema.get("required", [])]
    described = {"type": "object", "properties": properties, "required": required}
    content = {"multipart/form-data": {"schema": described}}
    return {"requestBody": {"required": True, "content": content}}


def _as_form_field(about: dict[str, Any]) -> dict[str, Any]:
    """A field that can be left out, but not be null: a form has no word for it."""
    kinds = [kind for kind in about.pop("anyOf", ()) if kind != {"type": "null"}]
    if about.get("default", "") is None:
        del about["default"]
    return {**about, **(kinds[0] if len(kinds) == 1 else {"anyOf": kinds} if kinds else {})}


def _require_file(name: str, value: object) -> UploadFile:
    if not isinstance(value, UploadFile):
        raise InvalidRequest(f"{name}: must be a file", param=name)
    return value


def _require_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{name}: must be text", param=name)
    # The body names its encoding, and some of them can spell that.
    if not is_unicode(value):
        raise InvalidRequest(f"{name}: {REASON}", param=name)
    return value


def _validated(model: type[Fields], texts: dict[str, Any]) -> Fields:
    try:
        return model.model_validate(texts)
    except ValidationError as error:
        problems = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        raise RequestValidationError(problems) from None
