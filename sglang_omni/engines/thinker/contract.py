"""What the thinker engine is told, asked and answers. Plain data; no torch, no sglang."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray

FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True)
class ThinkerSettings:
    """How SGLang serves the thinker. None leaves a value to SGLang.

    `server_args` are further SGLang server arguments, by name; they win over ours.
    `deterministic` makes a seed fix sampled text; SGLang supports it on GPUs only.
    """

    checkpoint: Path
    device: str = "cpu"
    dtype: str = "float32"
    tp_size: int = 1
    gpus: tuple[int, ...] = ()
    context_length: int | None = None
    max_total_tokens: int | None = None
    max_running_requests: int | None = None
    mem_fraction_static: float | None = None
    radix_cache: bool = True
    deterministic: bool = False
    server_args: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Grammar:
    """What an answer may be, in llguidance's Lark. `field` names the request's field that it comes
    from, for error messages."""

    lark: str
    field: str


@dataclass(frozen=True)
class SamplingParams:
    """How the thinker samples. The defaults are greedy, as the released demos run.

    `logit_bias` pairs token ids with what is added to their logits. Under a `json_schema` (JSON in
    text) the answer is a document of that schema, under a `grammar` what that says; there is at
    most one of the two. With `top_logprobs`, each token comes with its log probability and those of
    so many likeliest ones.
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


@dataclass(frozen=True)
class Features:
    """Ready features of one image, video or audio clip, spliced in place of its tokens.

    `rows` holds [tokens, hidden] in `layout`: float32, or the uint16 bits of bfloat16. `offsets`
    are inclusive (first, last) token runs; `grid` is the patch grid (t, h, w) of each run, empty
    for audio. `content_hash`, 64 bits, must tell apart whatever has other rows or another grid:
    the radix cache goes by it.
    """

    modality: Literal["image", "video", "audio"]
    rows: SharedArray
    layout: Layout
    offsets: tuple[tuple[int, int], ...]
    content_hash: int
    grid: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class ThinkerRequest:
    """Prompt token ids, how to sample, and features for the prompt's placeholders.

    Requests of different `tenant` never share KV, however alike their prompts are.
    """

    input_ids: tuple[int, ...]
    sampling: SamplingParams
    features: tuple[Features, ...] = ()
    tenant: str | None = None


@dataclass(frozen=True)
class TokenLogprob:
    """The natural logarithm of a token's probability, and the likeliest tokens in its place with
    theirs, likeliest first."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class ThinkerOutput:
    """New tokens. The counts are totals so far; `finish_reason` is set on the last output.
    `logprobs` has one entry for each token where they were asked for."""

    token_ids: tuple[int, ...]
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    finish_reason: FinishReason | None = None
    logprobs: tuple[TokenLogprob, ...] = ()

    @property
    def last(self) -> bool:
        """Whether the request ends with this output."""
        return self.finish_reason is not None

    def merge(self, later: "Sequence[ThinkerOutput]") -> "ThinkerOutput":
        """This output and the next ones of the request, as if SGLang had given them at once."""
        every = (self, *later)
        return replace(
            every[-1],
            token_ids=tuple(chain.from_iterable(one.token_ids for one in every)),
            logprobs=tuple(chain.from_iterable(one.logprobs for one in every)),
        )


@dataclass(frozen=True)
class ThinkerInfo:
    """What a loaded thinker reports about itself. `context_length` is what prompt and answer of
    one request may have together, in tokens. `has_grammars` says whether it can keep to a JSON
    schema, `supports_grammar` whether to a grammar as well."""

    context_length: int
    max_total_tokens: int
    max_running_requests: int
    has_grammars: bool = True
    supports_grammar: bool = True
