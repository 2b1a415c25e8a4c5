from sglang_omni.entrypoints.realtime.playback import Playback, sent, silenced


def test_sound_is_heard_as_time_passes() -> None:
    playback = sent(Playback("a"), 500, now=1000)
    assert [playback.heard_ms(now) for now in (1000, 1200, 1500, 9000)] == [0, 200, 500, 500]


def test_sound_that_comes_in_time_is_played_without_a_gap() -> None:
    playback = sent(sent(Playback("a"), 500, now=1000), 500, now=1100)
    assert playback.ends_at == 2000
    assert playback.heard_ms(1600) == 600


def test_after_a_gap_sound_is_played_when_it_comes() -> None:
    playback = sent(Playback("a"), 500, now=1000)
    assert playback.heard_ms(2500) == 500
    playback = sent(playback, 500, now=3000)
    assert playback.heard_ms(3200) == 700


def test_nothing_is_heard_once_the_listener_is_silenced() -> None:
    playback = silenced(sent(Playback("a"), 500, now=1000), 1200)
    assert playback.heard_ms(5000) == 200
    assert silenced(playback, 1400) == playback


def test_nothing_of_an_item_is_heard_while_the_one_before_plays() -> None:
    playback = sent(Playback("b", ends_at=3000), 500, now=1000)
    assert playback.heard_ms(2000) == 0
    assert playback.heard_ms(3100) == 100
