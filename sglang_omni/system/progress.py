"""What a model says while it is loaded: the engine process listens, other callers need not."""

from collections.abc import Callable
from contextvars import ContextVar


def _ignore(text: str) -> None:
    """Drop progress that nobody listens to."""


_reporter: ContextVar[Callable[[str], None]] = ContextVar("reporter", default=_ignore)


def report_progress(text: str) -> None:
    """Say what is being loaded now, such as "loading weights 3/12"; `/health` shows it."""
    _reporter.get()(text)


def set_progress_reporter(reporter: Callable[[str], None]) -> None:
    """Send what `report_progress` is told to `reporter`, in this context."""
    _reporter.set(reporter)
