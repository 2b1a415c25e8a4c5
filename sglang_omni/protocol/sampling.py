"""How an answer is sampled, and the form that it is held to."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Grammar:
    """A grammar of the answer, in llguidance's Lark syntax.

    `field` is the request field that it comes from, for error messages.
    """

    lark: str
    field: str


@dataclass(frozen=True)
class SamplingParams:
    """Sampling parameters. The defaults are greedy, as in the released demos.

    Attributes:
        logit_bias: Pairs of a token id and the value that is added to its logit.
        json_schema: The answer is a JSON document of this schema (as JSON text).
        grammar: The answer matches this grammar. At most one of the two is set.
        top_logprobs: Return each token's log probability and those of this many likeliest tokens.
        prompt_logprobs: Return them for the prompt's tokens too. Requires `top_logprobs`.
    """

    max_tokens: int = 2048
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    stop: tuple[str, ...] = ()
    seed: int | None = None
    json_schema: str | None = None
    grammar: Grammar | None = None
    top_logprobs: int | None = None
    prompt_logprobs: bool = False
