"""Types of options: which values they allow, and how a command line writes them as text."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, Strict
from pydantic_core import to_jsonable_python

T = TypeVar("T")

# The text below a field is its description, which help, reference and error messages show.
OPTION_CONFIG = ConfigDict(
    extra="forbid", use_attribute_docstrings=True, ser_json_inf_nan="constants"
)


class ServeOnlyMarker:
    """Marks an option or section of the `serve` command, which the Python API does not take."""


SERVE_ONLY = ServeOnlyMarker()
ServeOnly = Annotated[T, SERVE_ONLY]


def _parse_integer(value: Any) -> Any:
    return int(value) if isinstance(value, str) else value


def _parse_number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


def _parse_flag(value: Any) -> Any:
    return {"true": True, "false": False}.get(value) if isinstance(value, str) else value


def _parse_path(value: Any) -> Any:
    return Path(value) if isinstance(value, str | os.PathLike) else value


def _parse_list(value: Any) -> Any:
    """Parse "0,1"."""
    if isinstance(value, str):
        return tuple(value.split(",")) if value else ()
    return tuple(value) if isinstance(value, list) else value


def _parse_mapping(value: Any) -> Any:
    """Parse YAML such as "{page_size: 16}"."""
    try:
        return yaml.safe_load(value) if isinstance(value, str) else value
    except yaml.YAMLError as error:
        raise ValueError("invalid YAML") from error


# Strict: a bool is not a number, and a number is not text. Only text is converted.
Integer = Annotated[int, Strict(), BeforeValidator(_parse_integer)]
Number = Annotated[float, Strict(), BeforeValidator(_parse_number)]
Flag = Annotated[bool, Strict(), BeforeValidator(_parse_flag)]
Text = Annotated[str, Strict()]
LocalPath = Annotated[Path, Strict(), BeforeValidator(_parse_path)]

Count = Annotated[Integer, Field(ge=1)]
Index = Annotated[Integer, Field(ge=0)]
Port = Annotated[Integer, Field(ge=0, le=65_535)]
Bytes = Annotated[Integer, Field(ge=0)]
Seconds = Annotated[Number, Field(ge=0)]
Fraction = Annotated[Number, Field(ge=0, le=1)]
Device = Literal["auto", "cpu", "cuda"]
DType = Literal["auto", "float32", "bfloat16"]
KVCacheDType = Literal["auto", "fp8_e4m3"]
Placement = Literal["manual", "auto"]

Texts = Annotated[tuple[Text, ...], Strict(), BeforeValidator(_parse_list)]
Gpus = Annotated[tuple[Index, ...], Strict(), BeforeValidator(_parse_list)]
# Values are those of YAML: from Python, a tuple becomes a list and a path text.
Arguments = Annotated[
    Mapping[Text, Any],
    Strict(),
    BeforeValidator(_parse_mapping),
    AfterValidator(to_jsonable_python),
]
