"""How FFmpeg's `atempo` changes the tempo: its factors, and where sound moves. No FFmpeg."""

# The range of factors for one filter. Above 2 it drops sound instead of blending it.
MIN_FACTOR, MAX_FACTOR = 0.5, 2.0
# A filter's window is the first power of two with so many samples a second, or more.
_MIN_WINDOWS_PER_S = 24


def split_speed(speed: float) -> list[float]:
    """Return factors in the range of one filter whose product is `speed` (> 0); empty for 1."""
    factors = []
    while not MIN_FACTOR <= speed <= MAX_FACTOR:
        step = MAX_FACTOR if speed > MAX_FACTOR else MIN_FACTOR
        factors.append(step)
        speed /= step
    return [*factors, speed] if speed != 1 else factors


def convert_time(seconds: float, sample_rate: int, speed: float) -> float:
    """Return when a moment of the original is heard at another speed, in seconds.

    Each filter drops the first half of a window of what it gets.
    """
    window = 1 << (sample_rate // _MIN_WINDOWS_PER_S - 1).bit_length()
    for factor in split_speed(speed):
        seconds = max(0.0, seconds - window / 2 / sample_rate) / factor
    return seconds
