"""How many cards callers need: the callers that a group of cards carries, and groups for all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.cluster.agreement import TALKER, THINKER
from benchmarks.cluster.system import GroupPlan, Outcome, conversations
from benchmarks.cluster.times import audio_encoder_s, talker_times, thinker_times
from benchmarks.cluster.workload import Habits

ENCODER = "encoders_h200_1024.json"
TALKER_H100 = "talker_h100.json"
GAPS = 0.001
"""The largest share of answers that may have a gap in their speech."""
SIMULATED_S = 120.0
MOST_CALLERS = 4096


@dataclass(frozen=True)
class Capacity:
    """The callers that a group carries, and what they get when there are so many."""

    plan: GroupPlan
    callers: int
    outcome: Outcome

    def groups(self, callers: int) -> int:
        """Return the groups that so many callers need."""
        return math.ceil(callers / self.callers)


def known_plans() -> Sequence[GroupPlan]:
    """Return the groups whose engines have been measured."""
    thinker, encoder_s = thinker_times(THINKER), audio_encoder_s(ENCODER)
    h200, h100 = talker_times(TALKER), talker_times(TALKER_H100)
    return (
        GroupPlan("all on one H200", thinker, h200, (0,), encoder_s, ("H200",)),
        GroupPlan("H200, talker on H100", thinker, h100, (1,), encoder_s, ("H200", "H100")),
        GroupPlan("H200, talker on H200", thinker, h200, (1,), encoder_s, ("H200", "H200")),
    )


def find_capacity(
    plan: GroupPlan, first_audio_s: float, habits: Habits, seconds: float = SIMULATED_S
) -> Capacity | None:
    """Search the most callers of a group whose answers begin in time and have no gaps.

    First audio must come within `first_audio_s` in 95 % of the turns. Returns None if one caller is
    too many.
    """
    found: Capacity | None = None
    least, most = 0, MOST_CALLERS
    while most - least > max(1, least // 50):
        # Upwards by doubling, until there is a number that is too many.
        callers = max(1, 2 * least) if most == MOST_CALLERS else (least + most) // 2
        outcome = conversations(plan, callers, habits.draw, seconds)
        if outcome.first_audio[2] <= first_audio_s and outcome.with_gaps <= GAPS:
            found, least = Capacity(plan, callers, outcome), callers
            if callers >= MOST_CALLERS:
                break
        else:
            most = callers
    return found
