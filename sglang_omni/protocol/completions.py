"""The body of `POST /v1/completions`. The route checks rules between fields."""

from typing import Annotated, Any

from pydantic import Field, PlainValidator
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import MAX_SEED
from sglang_omni.protocol.generation import ChoiceFields
from sglang_omni.protocol.token_ids import TokenIds, is_token_ids

# Prompts times answers to each. All of them are generated at once.
MAX_CHOICES = 16

Prompt = str | TokenIds
"""A text, or the ids of its tokens."""


def _to_prompts(value: Any) -> tuple[Prompt, ...]:
    """Return the prompts, of which there is one if `value` is a text or token ids."""
    prompts = [value] if isinstance(value, str) or is_token_ids(value) else value
    is_valid = isinstance(prompts, list) and all(
        isinstance(prompt, str) or is_token_ids(prompt) for prompt in prompts
    )
    if not is_valid:
        raise PydanticCustomError(
            "prompt", "must be a text, a list of token ids, or a list of such prompts"
        )
    if not prompts or not all(prompts):
        raise PydanticCustomError("prompt", "must not be empty")
    if len(prompts) > MAX_CHOICES:
        raise PydanticCustomError(
            "prompt", "must be at most {limit} prompts", {"limit": MAX_CHOICES}
        )
    return tuple(prompt if isinstance(prompt, str) else tuple(prompt) for prompt in prompts)


Prompts = Annotated[
    tuple[Prompt, ...],
    PlainValidator(
        _to_prompts, json_schema_input_type=str | list[int] | list[str] | list[list[int]]
    ),
    Field(
        description="A text, in which names of special tokens stand for them, or token ids; or a "
        "list of either. No chat template is applied"
    ),
]


class CompletionBody(ChoiceFields):
    """The body of `POST /v1/completions`."""

    prompt: Prompts
    seed: Annotated[
        int | None,
        Field(
            ge=0,
            le=MAX_SEED,
            description="Seed of the sampling; `seed_applies_to` in the answer says if it fixes it",
        ),
    ] = None
    max_tokens: Annotated[
        int, Field(ge=0, description="0 requires `echo`: the answer is the prompt alone")
    ] = 16
    echo: Annotated[bool, Field(description="Whether the answer begins with the prompt")] = False
    logprobs: Annotated[
        int | None,
        Field(
            ge=0,
            le=20,
            description="Return log probabilities of the tokens, with `echo` of the prompt's too, "
            "and of this many likeliest tokens",
        ),
    ] = None
    best_of: Annotated[
        int | None, Field(ge=1, description="Accepted if it equals `n`: nothing is ranked")
    ] = None
