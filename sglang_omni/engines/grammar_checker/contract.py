"""Settings, requests and outputs of the grammar checker process. Plain data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sglang_omni.protocol.sampling import SamplingParams

# As in our configuration of SGLang: with arbitrary whitespace in JSON, a model may generate it
# endlessly.
JSON_OPTIONS = {"whitespace_flexible": False}


GrammarKind = Literal["json", "ebnf"]
"""A JSON schema, or a grammar in Lark, which SGLang accepts as `ebnf`."""


@dataclass(frozen=True)
class GrammarSettings:
    """The checkpoint with the tokenizer, and the limits for compiling one grammar.

    `cpu_seconds` is CPU time. `memory_bytes` is on top of what the process uses at its start.
    """

    checkpoint: Path
    cpu_seconds: int = 3
    memory_bytes: int = 512 << 20


@dataclass(frozen=True)
class CheckRequest:
    """Compile a grammar as the thinker would: a JSON schema as text, or a Lark grammar."""

    kind: GrammarKind
    text: str


@dataclass(frozen=True)
class GrammarVerdict:
    """Whether the thinker can use the grammar. `reason` tells why not."""

    reason: str | None = None
    last: bool = True


def build_check_request(sampling: SamplingParams) -> CheckRequest | None:
    """Return the check that an answer needs, or None if it has no schema or grammar."""
    if sampling.grammar is not None:
        return CheckRequest("ebnf", sampling.grammar.lark)
    if sampling.json_schema is not None:
        return CheckRequest("json", sampling.json_schema)
    return None
