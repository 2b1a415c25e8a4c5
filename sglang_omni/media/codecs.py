"""The compressed audio formats, their encoders and their containers. Plain data."""

from dataclasses import dataclass, field

MPEG_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)


@dataclass(frozen=True)
class Codec:
    """An encoder and its container.

    `rates` are the supported sample rates in Hz, empty for any. `bit_rate` is in bits per second,
    None for a lossless codec. `options` are options of the container.
    """

    name: str
    container: str
    media_type: str
    rates: tuple[int, ...] = ()
    bit_rate: int | None = None
    options: dict[str, str] = field(default_factory=dict)


CODECS = {
    # No Xing header: the number of frames is known only at the end.
    "mp3": Codec("libmp3lame", "mp3", "audio/mpeg", MPEG_RATES, 128_000, {"write_xing": "0"}),
    # Pages of 0.2 s. The default of 1 s would delay the first sound.
    "opus": Codec(
        "libopus",
        "ogg",
        "audio/ogg",
        (8_000, 12_000, 16_000, 24_000, 48_000),
        96_000,
        {"page_duration": "200000"},
    ),
    "aac": Codec("aac", "adts", "audio/aac", MPEG_RATES, 128_000),
    "flac": Codec("flac", "flac", "audio/flac"),
}
