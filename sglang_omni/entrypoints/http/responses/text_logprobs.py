"""Log probabilities of tokens in the form of OpenAI's text completions."""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sglang_omni.engines.thinker.contract import TokenLogprob
from sglang_omni.entrypoints.http.responses.token_logprobs import to_finite
from sglang_omni.entrypoints.requests.token_text import TokenText

Json = dict[str, Any]


def name_token(token_id: int, token_text: TokenText) -> str:
    """Return a token as text: a special one by its name, a part of a character as OpenAI does."""
    name, data = token_text(token_id)
    if not data:
        return name
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)


@dataclass
class _Entries:
    """The lists of one `logprobs` object, which have an entry for each token."""

    tokens: list[str] = field(default_factory=list)
    token_logprobs: list[float | None] = field(default_factory=list)
    top_logprobs: list[dict[str, float] | None] = field(default_factory=list)
    text_offset: list[int] = field(default_factory=list)


class TextLogprobs:
    """Writer of the `logprobs` of one choice, whose tokens come in order.

    `text_offset` counts characters from the beginning of the choice's text. A token that only
    completes a character begins where the character does.
    """

    def __init__(self, token_text: TokenText, num_top: int) -> None:
        self._token_text, self._num_top = token_text, num_top
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._offset = 0

    def build_prompt(self, ids: tuple[int, ...], logprobs: Iterable[TokenLogprob]) -> Json:
        """Return the object of a prompt, whose first token has no log probability."""
        entries = _Entries()
        self._add(entries, ids[0], is_prompt=True)
        entries.token_logprobs.append(None)
        entries.top_logprobs.append(None)
        for token in logprobs:
            self._add(entries, token.token_id, is_prompt=True)
            self._add_values(entries, token)
        return self._build(entries)

    def build(self, logprobs: Iterable[TokenLogprob]) -> Json:
        """Return the object of the answer's next tokens. Special tokens are in it, by name."""
        entries = _Entries()
        for token in logprobs:
            self._add(entries, token.token_id)
            self._add_values(entries, token)
        return self._build(entries)

    def _add(self, entries: _Entries, token_id: int, *, is_prompt: bool = False) -> None:
        entries.tokens.append(name_token(token_id, self._token_text))
        entries.text_offset.append(self._offset)
        name, data = self._token_text(token_id)
        # The text of a prompt has the names of its special tokens; that of an answer has not.
        self._offset += len(self._utf8.decode(data or (name.encode() if is_prompt else b"")))

    def _add_values(self, entries: _Entries, token: TokenLogprob) -> None:
        entries.token_logprobs.append(to_finite(token.logprob))
        pairs = (*token.top, (token.token_id, token.logprob))
        entries.top_logprobs.append(
            {name_token(token_id, self._token_text): to_finite(value) for token_id, value in pairs}
        )

    def _build(self, entries: _Entries) -> Json:
        top_logprobs = entries.top_logprobs if self._num_top else None
        return {**vars(entries), "top_logprobs": top_logprobs}


def join_logprobs(first: Json, second: Json) -> Json:
    """Return one `logprobs` object of two runs of tokens."""
    return {name: None if first[name] is None else first[name] + second[name] for name in first}
