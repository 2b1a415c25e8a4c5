"""What the process that checks grammars is told, asked and answers. Plain data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sglang_omni.engines.thinker.contract import SamplingParams

# As SGLang's back end is started here: a model that may put any white space into JSON may go on
# with it for ever.
JSON_OPTIONS = {"whitespace_flexible": False}


GrammarKind = Literal["json", "ebnf"]
"""A JSON schema, or a grammar in Lark, which SGLang takes under this name."""


@dataclass(frozen=True)
class GrammarSettings:
    """Whose tokens a grammar is compiled for, and what one may take: seconds of a core, and bytes
    of memory beside what the process has at its start."""

    checkpoint: Path
    cpu_seconds: int = 3
    memory_bytes: int = 512 << 20


@dataclass(frozen=True)
class CheckRequest:
    """Compile a grammar as the thinker would: a JSON schema in text, or one in Lark."""

    kind: GrammarKind
    text: str


@dataclass(frozen=True)
class Verdict:
    """Whether the thinker can hold an answer to it; `reason` says why not."""

    reason: str | None = None
    last: bool = True


def check_request(sampling: SamplingParams) -> CheckRequest | None:
    """What is to be checked for an answer; None where its form is free."""
    if sampling.grammar is not None:
        return CheckRequest("ebnf", sampling.grammar.lark)
    if sampling.json_schema is not None:
        return CheckRequest("json", sampling.json_schema)
    return None
