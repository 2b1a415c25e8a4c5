"""OpenAI's response objects."""

import time
from dataclasses import dataclass
from typing import Any, Literal

from sglang_omni.entrypoints.requests.token_text import TokenText
from sglang_omni.pipeline.request import Usage
from sglang_omni.protocol.errors import OmniError
from sglang_omni.protocol.functions import PlainChoice
from sglang_omni.protocol.responses import (
    CreateResponseBody,
    ImageGenerationTool,
    ResponseFunctionTool,
)

Json = dict[str, Any]
Status = Literal["in_progress", "completed", "incomplete", "failed"]

# OpenAI's tiers of the priorities in the queue.
_TIERS = {"low": "flex", "normal": "default", "high": "priority"}


def make_response_id(request_id: str) -> str:
    """Return the id of the response to a request."""
    return f"resp_{request_id}"


@dataclass(frozen=True)
class ResponseInfo:
    """The properties of a response that are known before its first event.

    Attributes:
        request_id: Id of the request.
        settings: The fields of the response object that stay the same.
        token_text: Returns the text of a token; None if no log probabilities were requested.
    """

    request_id: str
    settings: Json
    token_text: TokenText | None = None

    def build(self, status: Status, output: list[Json], **changes: Any) -> Json:
        """Return the response object. `changes` replace fields, such as `usage`."""
        return {**self.settings, "status": status, "output": output, **changes}


def build_settings(body: CreateResponseBody, request_id: str, model: str) -> Json:
    """Return the fields of a response that stay the same; most of them repeat the request."""
    return {
        "id": make_response_id(request_id),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": None,
        "metadata": body.metadata,
        "model": model,
        "output": [],
        "parallel_tool_calls": body.parallel_tool_calls,
        "previous_response_id": body.previous_response_id,
        "reasoning": {"effort": body.reasoning.effort, "summary": None},
        "service_tier": _TIERS[body.priority],
        "store": body.store,
        "temperature": body.temperature,
        "text": {"format": body.text.format.model_dump(by_alias=True)},
        "tool_choice": _build_tool_choice(body),
        "tools": [_build_tool(tool) for tool in body.tools],
        "top_logprobs": body.top_logprobs or 0,
        "top_p": body.top_p,
        "truncation": "disabled",
        "usage": None,
    }


def _build_tool_choice(body: CreateResponseBody) -> Json | str:
    choice = body.tool_choice
    return choice.type if isinstance(choice, PlainChoice) else choice.model_dump()


def _build_tool(tool: ResponseFunctionTool | ImageGenerationTool) -> Json:
    return tool.model_dump(exclude_none=isinstance(tool, ImageGenerationTool))


def build_usage(usage: Usage) -> Json:
    """Return OpenAI's usage object of a response. Drawn images are among its output."""
    output_tokens = usage.completion_tokens + usage.image_tokens
    drawn = {"image_tokens": usage.image_tokens} if usage.image_tokens else {}
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens, **drawn},
        "total_tokens": usage.prompt_tokens + output_tokens,
    }


def build_error(error: OmniError) -> Json:
    """Return the `error` of a failed response, with one of the few codes that OpenAI has."""
    if error.status == 429:
        code = "rate_limit_exceeded"
    else:
        code = "invalid_prompt" if 400 <= error.status < 500 else "server_error"
    return {"code": code, "message": error.message}
