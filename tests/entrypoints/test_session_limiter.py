"""A limit on sessions."""

from sglang_omni.entrypoints.session_limiter import SessionLimiter


def test_sessions_are_acquired_and_released() -> None:
    sessions = SessionLimiter(2)
    release, other = sessions.acquire(), sessions.acquire()
    assert release is not None
    assert other is not None
    assert sessions.acquire() is None
    release()
    assert sessions.num_active == 1
    assert sessions.acquire() is not None
