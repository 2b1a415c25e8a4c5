"""One case: what is sent, where, and how it is kept in a file to be sent again."""

from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Case:
    """`data` for the place `about`, which only the target knows: a path, a kind of medium."""

    target: str
    about: str
    data: bytes

    def write(self, path: Path) -> None:
        """Keep it: a line that says what it is, then the data as they are."""
        path.write_bytes(f"{self.target} {self.about}\n".encode() + self.data)


def read_case(path: Path) -> Case:
    """Read what `Case.write` wrote."""
    head, _, data = path.read_bytes().partition(b"\n")
    target, _, about = head.decode().partition(" ")
    return Case(target, about, data)


class Finding(Exception):
    """The server did what it must not do."""
