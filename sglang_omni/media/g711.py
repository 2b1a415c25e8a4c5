"""The G.711 telephony codecs (ITU-T, 1988): mu-law and A-law, 8 bits per sample at 8 kHz.

A code has a sign bit, an exponent of three bits and a mantissa of four bits.
"""

import numpy as np

RATE = 8000
_ULAW_BIAS = 132
_ULAW_MAX = 32_632
# Every second bit of an A-law byte is inverted, so that silence is not a run of zeros.
_ALAW_INVERTED_BITS = 0x55


def ulaw_to_linear(data: bytes) -> np.ndarray:
    """Decode mu-law bytes to int16 [samples]."""
    return _ULAW_LINEAR[np.frombuffer(data, np.uint8)]


def alaw_to_linear(data: bytes) -> np.ndarray:
    """Decode A-law bytes to int16 [samples]."""
    return _ALAW_LINEAR[np.frombuffer(data, np.uint8)]


def linear_to_ulaw(samples: np.ndarray) -> bytes:
    """Encode int16 [samples] in mu-law, one byte each."""
    # The law is defined on 14 bits. Here they are the upper 14 of 16 bits.
    value = samples.astype(np.int32) & ~0x03
    size = np.minimum(np.abs(value), _ULAW_MAX) + _ULAW_BIAS
    exponent = _exponent(size)
    code = (exponent << 4) | ((size >> (exponent + 3)) & 0x0F)
    return np.where(value < 0, ~(code | 0x80), ~code).astype(np.uint8).tobytes()


def linear_to_alaw(samples: np.ndarray) -> bytes:
    """Encode int16 [samples] in A-law, one byte each."""
    value = samples.astype(np.int32)
    size = np.where(value < 0, ~value, value)
    exponent = np.where(size < 256, 0, _exponent(np.maximum(size, 256)))
    code = (exponent << 4) | ((size >> np.maximum(exponent + 3, 4)) & 0x0F)
    return (np.where(value < 0, code, code | 0x80) ^ _ALAW_INVERTED_BITS).astype(np.uint8).tobytes()


def _exponent(size: np.ndarray) -> np.ndarray:
    """Return the exponent of magnitudes of at least 128: the highest bit's position minus 7."""
    return np.frexp(size.astype(np.float64))[1] - 8


def _ulaw_table() -> np.ndarray:
    code = ~np.arange(256) & 0xFF
    size = ((((code & 0x0F) << 3) + _ULAW_BIAS) << ((code >> 4) & 7)) - _ULAW_BIAS
    return np.where(code & 0x80, -size, size).astype(np.int16)


def _alaw_table() -> np.ndarray:
    code = np.arange(256) ^ _ALAW_INVERTED_BITS
    exponent, mantissa = (code >> 4) & 7, (code & 0x0F) << 4
    size = np.where(exponent == 0, mantissa + 8, (mantissa + 264) << np.maximum(exponent - 1, 0))
    return np.where(code & 0x80, size, -size).astype(np.int16)


_ULAW_LINEAR, _ALAW_LINEAR = _ulaw_table(), _alaw_table()
