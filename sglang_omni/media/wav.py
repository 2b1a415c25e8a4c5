"""WAV headers: RIFF, mono, 16-bit PCM, in the canonical layout of 44 bytes."""

import struct

CHANNELS = 1
BYTES_PER_SAMPLE = 2
HEADER_BYTES = 44
UNKNOWN_SIZE = 0xFFFFFFFF


def build_header(sample_rate: int, data_bytes: int | None) -> bytes:
    """Return the 44-byte header. `sample_rate` is in Hz.

    A stream does not know its length when its header is sent. Then `data_bytes` is None, and both
    size fields are 0xFFFFFFFF, which readers take as "until the end of the stream".
    """
    if data_bytes is None:
        riff_size = data_size = UNKNOWN_SIZE
    else:
        riff_size, data_size = data_bytes + HEADER_BYTES - 8, data_bytes
    frame_bytes = CHANNELS * BYTES_PER_SAMPLE
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        riff_size,
        b"WAVE",
        b"fmt ",
        16,
        1,  # WAVE_FORMAT_PCM
        CHANNELS,
        sample_rate,
        sample_rate * frame_bytes,
        frame_bytes,
        8 * BYTES_PER_SAMPLE,
        b"data",
        data_size,
    )
