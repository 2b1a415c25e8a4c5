"""Stages 1 and 4: messages to a prompt, and the prompt with its features to a thinker request."""

from collections.abc import Sequence
from dataclasses import replace

from sglang_omni.errors import InvalidRequest
from sglang_omni.models.ming.prompt import render_chat
from sglang_omni.models.ming.tokenizer import ThinkerTokenizer
from sglang_omni.pipeline.request import ChatRequest
from sglang_omni.thinker.contract import Features, SamplingParams, ThinkerRequest


def preprocess(request: ChatRequest, tokenizer: ThinkerTokenizer) -> tuple[int, ...]:
    """Token ids of the rendered chat. Raises `InvalidRequest` naming the message at fault."""
    return tuple(tokenizer.encode(render_chat(request.messages, request.thinking)))


def aggregate(
    prompt: Sequence[int],
    features: Sequence[Features],
    sampling: SamplingParams,
    context_length: int,
) -> ThinkerRequest:
    """Join a prompt and its features; the answer may fill what the context leaves.

    Raises `InvalidRequest` when the prompt leaves no room, in tokens.
    """
    room = context_length - len(prompt)
    if room < 1:
        raise InvalidRequest(
            f"the prompt has {len(prompt)} tokens, the context {context_length}", param="messages"
        )
    bounded = replace(sampling, max_tokens=min(sampling.max_tokens, room))
    return ThinkerRequest(tuple(prompt), bounded, tuple(features))
