"""Settings, requests and outputs of the thinker engine. Plain data; no torch, no sglang."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.protocol.sampling import SamplingParams

FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True)
class ThinkerSettings:
    """Settings of the SGLang engine. None keeps SGLang's default.

    `tp_size` is the number of ranks; `ep_size` of their groups share the routed experts. The ranks
    are on `nodes` machines, of which this one has the number `node_rank`; `gpus` are its own.
    `dist_init_addr` is HOST:PORT of the first machine, where they meet.
    `server_args` are further SGLang server arguments by name, which override ours.
    `kv_cache_dtype` is how keys and values are stored; "auto" is `dtype`.
    `warm_up_prompts` compiles the kernels of prompts of every length before the thinker is ready.
    `deterministic` makes sampled text reproducible by its seed; SGLang supports it on GPUs only.
    """

    checkpoint: Path
    device: str = "cpu"
    dtype: str = "float32"
    tp_size: int = 1
    ep_size: int = 1
    gpus: tuple[int, ...] = ()
    nodes: int = 1
    node_rank: int = 0
    dist_init_addr: str | None = None
    context_length: int | None = None
    max_total_tokens: int | None = None
    max_running_requests: int | None = None
    mem_fraction_static: float | None = None
    kv_cache_dtype: str = "auto"
    radix_cache: bool = True
    warm_up_prompts: bool = True
    deterministic: bool = False
    server_args: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Features:
    """Features of one image, video or audio clip, which replace its placeholder tokens.

    Attributes:
        rows: The features [tokens, hidden] in `layout`: float32, or bfloat16 as uint16 bits.
        offsets: Inclusive token runs (first, last).
        content_hash: 64 bits that must differ for other rows or another grid. The radix cache uses
            them as the key.
        grid: The patch grid (t, h, w) of each run; empty for audio.
    """

    modality: Literal["image", "video", "audio"]
    rows: SharedArray
    layout: Layout
    offsets: tuple[tuple[int, int], ...]
    content_hash: int
    grid: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class QueryTokens:
    """Query tokens in a prompt, at which the thinker returns its states after the final norm.

    Attributes:
        embeddings: Their embeddings, as those of an image with one run. The content hash must be
            new for every request: tokens that are found in the radix cache are not computed, so
            they have no states. What precedes the query tokens is reused.
        states: Where the states [tokens, hidden] are written.
    """

    embeddings: Features
    states: SharedArray


@dataclass(frozen=True)
class ThinkerRequest:
    """Prompt token ids, sampling parameters, and features for the prompt's placeholders.

    Requests of different tenants never share KV cache, even for equal prompts.
    """

    input_ids: tuple[int, ...]
    sampling: SamplingParams
    features: tuple[Features, ...] = ()
    tenant: str | None = None
    query: QueryTokens | None = None


@dataclass(frozen=True)
class TokenLogprob:
    """The natural log probability of a token, and pairs of the likeliest tokens and theirs.

    `top` is sorted by descending probability.
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class ThinkerOutput:
    """New tokens of a request.

    The counts are totals so far. `finish_reason` is set on the last output. `logprobs` has one
    entry for each token if the request asks for them. `prompt_logprobs` has one for each token of
    the prompt but the first, on the first output, if the request asks for them. `query_states` is
    the layout of the states at the request's query tokens, on the first output.
    """

    token_ids: tuple[int, ...]
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    finish_reason: FinishReason | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    prompt_logprobs: tuple[TokenLogprob, ...] = ()
    query_states: Layout | None = None

    @property
    def last(self) -> bool:
        """Return whether the request ends with this output."""
        return self.finish_reason is not None

    def merge(self, later: "Sequence[ThinkerOutput]") -> "ThinkerOutput":
        """Merge this output with the next ones of the request, as if they were one output."""
        # Clients that are behind get all their tokens this way. `replace` takes twice as long.
        outputs = (self, *later)
        last = outputs[-1]
        return ThinkerOutput(
            tuple([token_id for output in outputs for token_id in output.token_ids]),
            last.prompt_tokens,
            last.cached_tokens,
            last.completion_tokens,
            last.finish_reason,
            _join([output.logprobs for output in outputs]),
            _join([output.prompt_logprobs for output in outputs]),
            self.query_states,
        )


def _join(logprobs: "list[tuple[TokenLogprob, ...]]") -> tuple[TokenLogprob, ...]:
    return tuple(chain.from_iterable(logprobs)) if any(logprobs) else ()


@dataclass(frozen=True)
class ThinkerInfo:
    """What a loaded thinker reports.

    `context_length` limits the prompt and the answer of one request together, in tokens.
    `supports_json_schema` and `supports_grammar` tell which constraints on the answer are possible.
    """

    context_length: int
    max_total_tokens: int
    max_running_requests: int
    supports_json_schema: bool = True
    supports_grammar: bool = True
