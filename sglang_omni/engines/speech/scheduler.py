"""Who gets a slot, who steps and who ends: the talker's policies, as pure functions."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sglang_omni.models.ming.speech.talker import STOP_THRESHOLD
from sglang_omni.models.ming.text.duration import estimate_max_duration_s
from sglang_omni.protocol.errors import InvalidRequest

PATCH_SECONDS = 0.32


@dataclass(frozen=True)
class Limits:
    """When a request must end.

    The stop rule counts from patch number `min_patches` + 1 (numbered from 0). No request gets
    more than `max_patches`, nor more than fit with its prompt into `context` positions.
    """

    min_patches: int
    max_patches: int
    context: int


def duration_guard(text: str) -> int:
    """The most patches that reading `text` can reasonably take."""
    return max(1, int(estimate_max_duration_s(text) / PATCH_SECONDS))


def patch_limit(text: str, wanted: int | None, prompt_length: int, limits: Limits) -> int:
    """The most patches a request gets; `wanted` replaces the duration guard of its text.

    Raises `InvalidRequest` when the context has no room for the shortest speech the stop rule
    can end.
    """
    limit = min(duration_guard(text) if wanted is None else wanted, limits.max_patches)
    room = limits.context - prompt_length
    if room < min(limit, limits.min_patches + 2):
        raise InvalidRequest(
            f"the text is too long to speak in one piece: its prompt takes {prompt_length} of "
            f"{limits.context} positions",
            param="input",
        )
    return min(limit, room)


def is_last(patch: int, stop: float, limit: int, limits: Limits) -> bool:
    """Whether patch number `patch`, with stop probability `stop`, ends its request.

    The patch itself is kept. One that hits the limit is last too, so that the decoder's tail is
    flushed.
    """
    stopped = patch > limits.min_patches and stop > STOP_THRESHOLD
    return stopped or patch + 1 >= limit


def assign(waiting: Iterable[str], free: Iterable[int]) -> list[tuple[str, int]]:
    """Slots for waiting requests, first come, first served."""
    return list(zip(waiting, free, strict=False))


def steppable(running: Mapping[str, object], stalled: Collection[str]) -> list[str]:
    """The running requests whose clients keep up, in the order they joined."""
    return [request for request in running if request not in stalled]
