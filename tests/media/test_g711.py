"""G.711: equal to another implementation of the standard."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from sglang_omni.media import g711

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    # Another implementation of the standard; in Python up to 3.12, the newest that is supported.
    import audioop

EVERY_SAMPLE = np.arange(-32_768, 32_768).astype(np.int16)
EVERY_BYTE = bytes(range(256))


def test_every_sample_is_encoded_as_the_standard_says() -> None:
    linear = EVERY_SAMPLE.tobytes()
    assert g711.linear_to_ulaw(EVERY_SAMPLE) == audioop.lin2ulaw(linear, 2)
    assert g711.linear_to_alaw(EVERY_SAMPLE) == audioop.lin2alaw(linear, 2)


def test_every_byte_is_decoded_as_the_standard_says() -> None:
    assert g711.ulaw_to_linear(EVERY_BYTE).tobytes() == audioop.ulaw2lin(EVERY_BYTE, 2)
    assert g711.alaw_to_linear(EVERY_BYTE).tobytes() == audioop.alaw2lin(EVERY_BYTE, 2)


@pytest.mark.parametrize(
    ("encode", "decode"),
    [(g711.linear_to_ulaw, g711.ulaw_to_linear), (g711.linear_to_alaw, g711.alaw_to_linear)],
)
def test_what_was_coded_once_survives_coding_again(
    encode: Callable[[np.ndarray], bytes], decode: Callable[[bytes], np.ndarray]
) -> None:
    once = decode(encode(EVERY_SAMPLE))
    assert np.array_equal(decode(encode(once)), once)
