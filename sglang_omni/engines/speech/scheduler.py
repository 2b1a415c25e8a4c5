"""Policies of the talker: slot assignment, step selection and stop rule. Pure functions."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sglang_omni.protocol.errors import InvalidRequest


@dataclass(frozen=True)
class PatchLimits:
    """The limits of a request's length.

    The stop rule needs a probability above `stop_threshold`, and applies from patch number
    `min_patches` + 1 (counted from 0). A request gets at most `max_patches`, and no more than fit
    into `context` positions together with its prompt.
    """

    min_patches: int
    max_patches: int
    context: int
    stop_threshold: float = 0.5


def compute_patch_limit(
    estimate: int, requested: int | None, prompt_length: int, limits: PatchLimits
) -> int:
    """Return the maximum number of patches of a request.

    Args:
        estimate: The maximum number of patches that the text can reasonably take.
        requested: The request's own limit; None for the estimate.
        prompt_length: The number of positions of the prompt.
        limits: The engine's limits.

    Raises:
        InvalidRequest: The context is too small for the shortest speech that the stop rule can end.
    """
    limit = min(estimate if requested is None else requested, limits.max_patches)
    available = limits.context - prompt_length
    if available < min(limit, limits.min_patches + 2):
        raise InvalidRequest(
            f"the text is too long to speak in one fragment: its prompt takes {prompt_length} of "
            f"{limits.context} positions; shorten it",
            param="input",
        )
    return min(limit, available)


def is_last_patch(patch: int, stop: float, limit: int, limits: PatchLimits) -> bool:
    """Return whether patch number `patch`, with stop probability `stop`, ends its request.

    The patch itself is kept. A patch at the limit is the last one too, which flushes the decoder.
    """
    is_stopped = patch > limits.min_patches and stop > limits.stop_threshold
    return is_stopped or patch + 1 >= limit


def assign_slots(waiting: Iterable[str], free: Iterable[int]) -> list[tuple[str, int]]:
    """Assign free slots to waiting requests, first come, first served."""
    return list(zip(waiting, free, strict=False))


def select_steppable(running: Mapping[str, object], stalled: Collection[str]) -> list[str]:
    """Return the running requests that are not stalled, in the order they joined."""
    return [request for request in running if request not in stalled]
