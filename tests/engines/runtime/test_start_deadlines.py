"""Which deadline of a start runs out first, and what is said of it."""

import pytest

from sglang_omni.engines.runtime.start_deadlines import StartWatch

WATCH = StartWatch.at(100.0, whole_s=30, phase_s=10, silence_s=3)


@pytest.mark.parametrize(
    ("watch", "ends", "reason"),
    [
        (WATCH, 103, "gave no sign of life for 3 s"),
        (WATCH.heard(108), 110, "spent more than 10 s before it said what it does"),
        (WATCH.entered("loading", 104), 107, "gave no sign of life for 3 s (last seen: loading)"),
        (WATCH.entered("loading", 104).heard(113), 114, "spent more than 10 s on 'loading'"),
        (
            WATCH.entered("loading", 125).heard(128),
            130,
            "was not ready within 30 s (last seen: loading)",
        ),
    ],
)
def test_the_soonest_deadline_speaks(watch: StartWatch, ends: float, reason: str) -> None:
    assert watch.ends() == ends
    assert watch.reason() == reason
