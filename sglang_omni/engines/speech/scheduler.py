"""Who gets a slot, who steps and who ends: the talker's policies, as pure functions."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sglang_omni.protocol.errors import InvalidRequest


@dataclass(frozen=True)
class Limits:
    """When a request must end.

    The stop rule needs a probability above `stop_threshold`, and counts from patch number
    `min_patches` + 1 (numbered from 0). No request gets more than `max_patches`, nor more than fit
    with its prompt into `context` positions.
    """

    min_patches: int
    max_patches: int
    context: int
    stop_threshold: float = 0.5


def patch_limit(usual: int, wanted: int | None, prompt_length: int, limits: Limits) -> int:
    """Return the most patches a request gets: `usual` for its text, unless `wanted` says more.

    Raises `InvalidRequest` when the context has no room for the shortest speech the stop rule
    can end.
    """
    limit = min(usual if wanted is None else wanted, limits.max_patches)
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
    stopped = patch > limits.min_patches and stop > limits.stop_threshold
    return stopped or patch + 1 >= limit


def assign(waiting: Iterable[str], free: Iterable[int]) -> list[tuple[str, int]]:
    """Slots for waiting requests, first come, first served."""
    return list(zip(waiting, free, strict=False))


def steppable(running: Mapping[str, object], stalled: Collection[str]) -> list[str]:
    """The running requests whose clients keep up, in the order they joined."""
    return [request for request in running if request not in stalled]
