"""Incremental decoding: deltas join to the full decode, and stop strings stop."""

import random
import time
from collections.abc import Iterator, Sequence

import pytest

from sglang_omni.pipeline.decode import TextDecoder
from sglang_omni.protocol.errors import InvalidRequest
from tests.testing.family import Tokens

TEXTS = (
    "The river runs slowly past the old mill.",
    "今天天气很好，我们一起去公园散步吧。",
    "emoji 😀🚀 and a family 👨‍👩‍👧‍👦, flags 🇩🇪🇨🇳, skin 👍🏽, e\u0301",
    "𠀀𪚥 rare Han, naïve café, \ufffd literal",
)


def pieces(ids: list[int], rng: random.Random) -> Iterator[list[int]]:
    """`ids` cut into random runs, as an engine may hand them over."""
    while ids:
        count = rng.randint(1, 4)
        yield ids[:count]
        ids = ids[count:]


def deltas(
    tokenizer: Tokens, ids: Sequence[int], stop: tuple[str, ...] = (), seed: int = 0
) -> tuple[list[str], TextDecoder]:
    decoder = TextDecoder(tokenizer, stop)
    parts = [decoder.push(piece) for piece in pieces(list(ids), random.Random(seed))]
    return [*parts, decoder.finish()], decoder


def without_open_character(tokenizer: Tokens, ids: Sequence[int]) -> str:
    """The library's full decode, less a character whose last bytes never came."""
    data = b"".join(tokenizer.token_bytes(i) for i in ids)
    for cut in range(1, 4):
        tail = data[-cut:]
        if tail and tail[0] >= 0xC0:
            try:
                tail.decode()
            except UnicodeDecodeError as error:
                if error.reason == "unexpected end of data":
                    return tokenizer.decode(ids)[:-1]
            break
    return tokenizer.decode(ids)


@pytest.mark.parametrize("text", TEXTS)
def test_deltas_join_to_the_text_and_never_hold_half_a_character(
    tokenizer: Tokens, text: str
) -> None:
    decoder = TextDecoder(tokenizer)
    ids = tokenizer.encode_text(text)
    parts = [decoder.push([i]) for i in ids]
    assert decoder.finish() == ""
    assert "".join(parts) == tokenizer.decode(ids)
    assert "\ufffd" not in "".join(parts).replace("\ufffd literal", "")


def test_deltas_of_random_tokens_join_to_the_full_decode(tokenizer: Tokens) -> None:
    rng = random.Random(1)
    open_ends = 0
    for seed in range(300):
        ids = [rng.randrange(tokenizer.num_ordinary) for _ in range(rng.randrange(60))]
        parts, _ = deltas(tokenizer, ids, seed=seed)
        expected = without_open_character(tokenizer, ids)
        open_ends += expected != tokenizer.decode(ids)
        assert "".join(parts) == expected
    assert open_ends > 3  # the exception was exercised, and is an exception
    assert open_ends < 150


def test_a_character_is_sent_with_its_last_byte(tokenizer: Tokens) -> None:
    ids = tokenizer.encode_text("𪚥")
    assert len(ids) > 1
    decoder = TextDecoder(tokenizer)
    assert [decoder.push([i]) for i in ids] == [""] * (len(ids) - 1) + ["𪚥"]


def test_a_character_cut_off_by_the_token_limit_is_dropped(tokenizer: Tokens) -> None:
    ids = tokenizer.encode_text("ok 𪚥")[:-1]
    parts, _ = deltas(tokenizer, ids)
    assert "".join(parts) == "ok "


def test_special_tokens_are_silent(tokenizer: Tokens) -> None:
    hi = tokenizer.encode_text("hi")
    assert tokenizer.special
    ids = [token for special in tokenizer.special for token in (special, *hi)]
    assert "".join(deltas(tokenizer, ids)[0]) == "hi" * len(tokenizer.special)


@pytest.mark.parametrize(
    ("text", "stop", "shown"),
    [
        ("one two STOP three", ("STOP",), "one two "),
        ("one two STO", ("STOP",), "one two STO"),
        ("one STO STOP", ("STOP",), "one STO "),
        ("aaab", ("aab",), "a"),
        ("xabcy", ("abcd", "bc"), "xa"),
        ("xabcy", ("b", "abc"), "xa"),
        ("xabcy", ("bc", "abc"), "x"),
        ("今天。明天。", ("。",), "今天"),
        ("go 🚀 on", ("🚀",), "go "),
        ("line\n\nnext", ("\n\n",), "line"),
        ("STOP", ("STOP",), ""),
    ],
)
def test_text_from_a_stop_string_on_never_appears(
    tokenizer: Tokens, text: str, stop: tuple[str, str] | tuple[str], shown: str
) -> None:
    ids = tokenizer.encode_text(text)
    for seed in range(20):
        parts, decoder = deltas(tokenizer, ids, stop, seed)
        assert "".join(parts) == shown
        assert decoder.stopped == any(s in text for s in stop)


def test_text_that_may_begin_a_stop_string_is_held_until_decided(
    tokenizer: Tokens,
) -> None:
    decoder = TextDecoder(tokenizer, ("END",))
    push = [decoder.push(tokenizer.encode_text(part)) for part in ("xE", "N", "x", "E")]
    assert push == ["x", "", "ENx", ""]
    assert decoder.finish() == "E"
    assert decoder.finish() == ""


def test_empty_stop_string_is_refused(tokenizer: Tokens) -> None:
    with pytest.raises(InvalidRequest) as error:
        TextDecoder(tokenizer, ("",))
    assert error.value.param == "stop"


def test_cost_per_token_does_not_grow(tokenizer: Tokens) -> None:
    """20,000 invalid bytes: a decoder that decodes its tail again would never finish."""
    stray = tokenizer.encode_text("é")[-1]
    decoder = TextDecoder(tokenizer, ("never",))
    began = time.process_time()
    length = sum(len(decoder.push([stray])) for _ in range(20_000))
    assert time.process_time() - began < 2.0
    assert length == len(tokenizer.decode([stray] * 20_000))
