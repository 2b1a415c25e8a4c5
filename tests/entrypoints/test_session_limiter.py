"""A bound on sessions."""

from sglang_omni.entrypoints.session_limiter import SessionLimiter


def test_seats_are_taken_and_left() -> None:
    seats = SessionLimiter(2)
    leave, other = seats.take(), seats.take()
    assert leave is not None
    assert other is not None
    assert seats.take() is None
    leave()
    assert seats.taken == 1
    assert seats.take() is not None
