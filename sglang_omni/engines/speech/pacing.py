"""Who steps next when more listen than one step takes, and who is admitted at all.

Pure policies over plain numbers; no torch. A patch plays 320 ms, so that a step of 38 ms for 128
streams carries a thousand listeners, each stepped every eighth time. Two rules keep them
all playing: a step takes those who run dry soonest, which is earliest deadline first, and nobody
is admitted whose arrival would make a deadline impossible. Earliest deadline first meets every set
of deadlines that can be met, so whether one can be is a count: the patches that fall due by a time
against the patches that can be made by then.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sglang_omni.models.speech import StepTimes
from sglang_omni.protocol.errors import Overloaded

# Nobody is told to come back sooner or later than this.
RETRY_S = (1.0, 30.0)


@dataclass(frozen=True)
class LatencyTarget:
    """What every listener is promised.

    First audio comes within `first_audio_s` of the admission and takes `first_patches` patches,
    since the decoder looks ahead. `reserve` is the fraction of the engine's speed that admission
    leaves alone, for all that the measurement did not see. At most `slots` requests are held.
    """

    slots: int
    first_audio_s: float = 0.5
    first_patches: int = 2
    reserve: float = 0.1


@dataclass(frozen=True)
class PlayingStream:
    """A request that plays. `buffered_s` seconds of its audio are still to be played, negative
    where it has run dry. At most `left_s` seconds are still to be made."""

    request_id: str
    buffered_s: float
    left_s: float = math.inf


def buffered_s(sent_s: float, first_sent_at_s: float, now_s: float) -> float:
    """Seconds of audio before the listener runs dry, if it plays from the first on.

    `sent_s` seconds of audio were sent since `first_sent_at_s`. An underrun counts on: a listener
    who stopped for a second and resumed has more ahead than this says, never less.
    """
    return first_sent_at_s + sent_s - now_s


def choose(
    newcomers: Sequence[str], listeners: Sequence[PlayingStream], pace: StepTimes, width: int
) -> list[str]:
    """Who is in the next step, at most `width`: first audio first, then whoever has least ahead.

    `newcomers` have had no audio yet, oldest first. Before them go only those whom one step of
    waiting would make run dry: a gap is heard, a later beginning hardly.
    """
    by_need = sorted(listeners, key=lambda listener: listener.buffered_s)
    # Left out, a listener gets its patch at the end of the step after next.
    bearable_s = 2 * pace.step_s(min(width, pace.widest))
    urgent = [one.request_id for one in by_need if one.buffered_s < bearable_s]
    others = [one.request_id for one in by_need[len(urgent) :]]
    return [*urgent, *newcomers, *others][:width]


def capacity(pace: StepTimes, promise: LatencyTarget) -> int:
    """How many can listen in real time for ever, within the slots and less the reserve."""
    streams, step_s = _reserved(pace, promise)
    return min(promise.slots, int(streams * pace.patch_s / step_s))


def require_room(
    listeners: Sequence[PlayingStream], newcomers: int, pace: StepTimes, promise: LatencyTarget
) -> None:
    """Admit one more listener to `listeners` that play and `newcomers` that have no audio yet.

    Only the first fragment of an answer needs admission: what belongs to one that plays already
    must not be refused. Raises `Overloaded`, saying when to come again, if the engine is full, if
    the first audio would come late, or if somebody would run dry for it.
    """
    held, most = len(listeners) + newcomers, capacity(pace, promise)
    if held >= most:
        wait_s = _until_left(listeners, held - most + 1)
        raise Overloaded(f"{held} listeners of {most}", retry_after_s=wait_s)
    wait_s = first_audio_after_s(newcomers + 1, pace, promise)
    if wait_s > promise.first_audio_s:
        raise Overloaded(f"first audio would take {wait_s:.2f} s", retry_after_s=_bounded(wait_s))
    if not all_keep_playing(listeners, newcomers + 1, pace, promise):
        raise Overloaded("somebody would run dry", retry_after_s=_bounded(wait_s))


def first_audio_after_s(newcomers: int, pace: StepTimes, promise: LatencyTarget) -> float:
    """When the last of `newcomers` has its first audio, if they go first."""
    streams, step_s = _reserved(pace, promise)
    patches = newcomers * promise.first_patches
    # The patches of one newcomer come one after the other, however wide a step is.
    steps = max(promise.first_patches, math.ceil(patches / streams))
    return newcomers * pace.prefill_s + steps * step_s


def all_keep_playing(
    listeners: Sequence[PlayingStream], newcomers: int, pace: StepTimes, promise: LatencyTarget
) -> bool:
    """Whether nobody runs dry though `newcomers` get their first audio before all others.

    What falls due before a step ends must have been made by the step before it. Looked at for as
    long as the newcomers' first audio can be felt. Who is dry before any step could end, with or
    without newcomers, is served but asks for no refusal.
    """
    if not listeners:
        return True
    streams, step_s = _reserved(pace, promise)
    ahead = np.maximum([one.buffered_s for one in listeners], 0.0)
    left = np.ceil(np.array([one.left_s for one in listeners]) / pace.patch_s)
    prefills_s = newcomers * pace.prefill_s
    if ((ahead >= step_s) & (ahead < prefills_s + step_s)).any():
        return False
    horizon_s = first_audio_after_s(newcomers, pace, promise) + pace.patch_s
    for made in range(1, math.ceil((horizon_s + len(listeners) / streams * step_s) / step_s)):
        ends_s = prefills_s + (made + 1) * step_s
        due = np.minimum(_due_before(ends_s, ahead, pace.patch_s), left).sum()
        first = newcomers * _newcomer_due_before(ends_s, step_s, pace, promise)
        if due and due + first > made * streams:
            return False
    return True


def _due_before(time_s: float, ahead: np.ndarray, patch_s: float) -> np.ndarray:
    """Patches [n] that fall due before `time_s` to listeners with `ahead` [n] seconds."""
    return np.maximum(0, np.ceil((time_s - ahead) / patch_s))


def _newcomer_due_before(
    time_s: float, step_s: float, pace: StepTimes, promise: LatencyTarget
) -> int:
    """Patches that the soonest newcomer takes before `time_s`; its first ones go before others."""
    first = promise.first_patches
    plays_until_s = first * step_s + (first - 1) * pace.patch_s
    return first + max(0, math.ceil((time_s - plays_until_s) / pace.patch_s))


def _reserved(pace: StepTimes, promise: LatencyTarget) -> tuple[int, float]:
    """The streams of the best step, and its seconds with the reserve."""
    streams, seconds = pace.best
    return streams, seconds / (1 - promise.reserve)


def _until_left(listeners: Sequence[PlayingStream], count: int) -> float:
    """Seconds until `count` listeners have all their audio, at the latest."""
    left = sorted(one.left_s for one in listeners)
    return _bounded(left[count - 1] if count <= len(left) else math.inf)


def _bounded(seconds: float) -> float:
    least, most = RETRY_S
    return min(max(seconds, least), most)
