"""Names of fields in errors, where the body of one route is converted to that of another."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from sglang_omni.protocol.errors import OmniError

T = TypeVar("T")


@dataclass(frozen=True)
class FieldNames:
    """What the fields of a converted body are called in the body that the client sent.

    Attributes:
        renamed: New beginnings of paths by old ones. The longest match counts.
        whole: New paths by the beginnings of old ones, of which the rest has no counterpart.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    whole: Mapping[str, str] = field(default_factory=dict)

    def find(self, path: str) -> str:
        """Return the client's name of the field at `path`."""
        # The prompt formats write `messages[0]`.
        steps = path.replace("[", ".").replace("]", "").split(".")
        for end in range(len(steps), 0, -1):
            beginning = ".".join(steps[:end])
            if beginning in self.whole:
                return self.whole[beginning]
            if beginning in self.renamed:
                return ".".join((self.renamed[beginning], *steps[end:]))
        return path

    @contextmanager
    def in_errors(self) -> Iterator[None]:
        """Use the client's names in errors that are raised meanwhile."""
        try:
            yield
        except OmniError as error:
            if error.param is not None:
                name = self.find(error.param)
                if error.message.startswith(f"{error.param}:"):
                    error.message = name + error.message.removeprefix(error.param)
                error.param = name
            raise

    async def in_errors_of(self, events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """Pass events on, with the client's names in their errors."""
        with self.in_errors():
            async with aclosing(events):
                async for event in events:
                    yield event
