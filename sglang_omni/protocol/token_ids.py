"""Token ids in bodies."""

from typing import Annotated, Any

from pydantic import PlainValidator
from pydantic_core import PydanticCustomError

TokenIds = tuple[int, ...]


def is_token_ids(value: Any) -> bool:
    """Return whether a value is a list of one or more integers."""
    # In Python, a bool is an integer.
    return isinstance(value, list) and bool(value) and all(type(item) is int for item in value)


def _to_token_ids(value: Any) -> TokenIds:
    if value != [] and not is_token_ids(value):
        raise PydanticCustomError("tokens", "must be a list of token ids")
    return tuple(value)


TokenIdList = Annotated[TokenIds, PlainValidator(_to_token_ids, json_schema_input_type=list[int])]
"""A list of integers, checked as a whole: pydantic would check each by itself."""
