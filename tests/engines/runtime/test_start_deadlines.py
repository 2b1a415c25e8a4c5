"""Which deadline of a start runs out first, and what is said of it."""

import pytest

from sglang_omni.engines.runtime.start_deadlines import StartDeadlines

DEADLINES = StartDeadlines.start(100.0, total_s=30, phase_s=10, silence_s=3)


@pytest.mark.parametrize(
    ("deadlines", "ends", "reason"),
    [
        (DEADLINES, 103, "sent no heartbeat for 3 s"),
        (
            DEADLINES.record_message(108),
            110,
            "spent more than 10 s before its first progress report",
        ),
        (
            DEADLINES.enter_phase("loading", 104),
            107,
            "sent no heartbeat for 3 s (last progress: loading)",
        ),
        (
            DEADLINES.enter_phase("loading", 104).record_message(113),
            114,
            "spent more than 10 s on 'loading'",
        ),
        (
            DEADLINES.enter_phase("loading", 125).record_message(128),
            130,
            "was not ready within 30 s (last progress: loading)",
        ),
    ],
)
def test_the_soonest_deadline_speaks(deadlines: StartDeadlines, ends: float, reason: str) -> None:
    assert deadlines.next_deadline() == ends
    assert deadlines.describe() == reason
