"""What a user has heard of the audio that was sent."""

from sglang_omni.entrypoints.realtime.playback import Playback, mark_stopped, record_sent


def test_sound_is_heard_as_time_passes() -> None:
    playback = record_sent(Playback("a"), 500, now_ms=1000)
    assert [playback.played_ms(now) for now in (1000, 1200, 1500, 9000)] == [0, 200, 500, 500]


def test_sound_that_comes_in_time_is_played_without_a_gap() -> None:
    playback = record_sent(record_sent(Playback("a"), 500, now_ms=1000), 500, now_ms=1100)
    assert playback.ends_at_ms == 2000
    assert playback.played_ms(1600) == 600


def test_after_a_gap_sound_is_played_when_it_comes() -> None:
    playback = record_sent(Playback("a"), 500, now_ms=1000)
    assert playback.played_ms(2500) == 500
    playback = record_sent(playback, 500, now_ms=3000)
    assert playback.played_ms(3200) == 700


def test_nothing_is_heard_once_the_listener_is_silenced() -> None:
    playback = mark_stopped(record_sent(Playback("a"), 500, now_ms=1000), 1200)
    assert playback.played_ms(5000) == 200
    assert mark_stopped(playback, 1400) == playback


def test_nothing_of_an_item_is_heard_while_the_one_before_plays() -> None:
    playback = record_sent(Playback("b", ends_at_ms=3000), 500, now_ms=1000)
    assert playback.played_ms(2000) == 0
    assert playback.played_ms(3100) == 100
