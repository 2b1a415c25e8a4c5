"""The tokens of texts and of chats, and the text of tokens."""

from collections.abc import Sequence
from typing import Any

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.requests.chat import build_chat_request
from sglang_omni.entrypoints.requests.metadata import RequestMetadata, require_model
from sglang_omni.entrypoints.requests.token_text import check_token_ids, decode_tokens
from sglang_omni.entrypoints.text_limit import check_text_length
from sglang_omni.pipeline.preprocess import estimate_text_work
from sglang_omni.pipeline.request import ChatRequest
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.chat import ChatBody, ChatMessage
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.media import TextContentPart
from sglang_omni.protocol.tokenization import DetokenizeBody, TokenizeBody

Json = dict[str, Any]


async def tokenize_body(
    body: TokenizeBody, backend: Backend, request_id: str, body_bytes: int
) -> Json:
    """Return the tokens of a text, of several texts, or of the prompt of a chat.

    Args:
        body: The body of the request.
        backend: The server.
        request_id: The id of the request.
        body_bytes: The size of the body, 0 for a small one.

    Raises:
        InvalidRequest: The chat is invalid, or has media.
        ContextExceeded: The text is far longer than the context.
        ModelNotFound: Another model is asked for.
    """
    require_model(body.model, backend)
    if body.messages is not None:
        chat = await run_off_loop(
            body_bytes, build_chat_to_tokenize, body, body.messages, backend, request_id
        )
        return await run_off_loop(estimate_text_work(chat), _tokenize_chat, chat, body, backend)
    texts = [body.prompt] if isinstance(body.prompt, str) else [*(body.prompt or ())]
    check_text_length((("prompt", len(text)) for text in texts), backend.context_length)
    return await run_off_loop(sum(map(len, texts)), _tokenize_texts, texts, body, backend)


def _tokenize_chat(chat: ChatRequest, body: TokenizeBody, backend: Backend) -> Json:
    return _build_answer(backend.tokenize(chat), body, backend)


def _tokenize_texts(texts: Sequence[str], body: TokenizeBody, backend: Backend) -> Json:
    """Return the tokens of a text, or lists with an entry for each text, as SGLang does."""
    answers = [_build_answer(backend.encode_prompt(text), body, backend) for text in texts]
    if isinstance(body.prompt, str):
        return answers[0]
    answer: Json = {name: [one[name] for one in answers] for name in ("count", "tokens")}
    strings = [one["token_strs"] for one in answers] if body.return_token_strs else None
    return {**answer, "max_model_len": backend.context_length, "token_strs": strings}


def _build_answer(ids: Sequence[int], body: TokenizeBody, backend: Backend) -> Json:
    names = (
        [backend.decode_token(token_id)[0] for token_id in ids] if body.return_token_strs else None
    )
    return {
        "count": len(ids),
        "max_model_len": backend.context_length,
        "tokens": ids,
        "token_strs": names,
    }


def build_chat_to_tokenize(
    body: TokenizeBody, messages: Sequence[ChatMessage], backend: Backend, request_id: str
) -> ChatRequest:
    """Return the chat whose prompt is tokenized. Raises `InvalidRequest`, naming the field."""
    reason = "media are not counted here; the usage of an answer has their tokens"
    for index, message in enumerate(messages):
        for number, part in enumerate(message.content):
            if not isinstance(part, TextContentPart):
                path = f"messages.{index}.content.{number}"
                raise InvalidRequest(f"{path}: {reason}", param=path)
        if message.images:
            path = f"messages.{index}.images"
            raise InvalidRequest(f"{path}: {reason}", param=path)
    chat = ChatBody(
        model=body.model,
        messages=[*messages],
        tools=body.tools,
        tool_choice=body.tool_choice,
        reasoning_effort=body.reasoning_effort,
        chat_template_kwargs=body.chat_template_kwargs,
    )
    return build_chat_request(chat, backend, RequestMetadata(request_id), None, lambda _: None)


def detokenize_body(body: DetokenizeBody, backend: Backend) -> Json:
    """Return the text of tokens, under vLLM's name and under SGLang's.

    Raises:
        InvalidRequest: An id is not that of a token.
        ContextExceeded: There are far more tokens than the context has.
        ModelNotFound: Another model is asked for.
    """
    require_model(body.model, backend)
    check_text_length([("tokens", len(body.tokens))], backend.context_length)
    check_token_ids(body.tokens, "tokens", backend)
    text = decode_tokens(
        body.tokens, backend.decode_token, skip_special_tokens=body.skip_special_tokens
    )
    return {"prompt": text, "text": text}
