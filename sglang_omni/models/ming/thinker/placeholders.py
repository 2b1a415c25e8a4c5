"""Places for media in the token ids of a prompt that has one placeholder for each of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from sglang_omni.media.limits import Kind
from sglang_omni.models.chat import PromptVideo
from sglang_omni.models.ming.media_rules import clip_tokens, patch_grid, picture_tokens
from sglang_omni.models.ming.prompt.chat import AUDIO_PATCH, FRAME_PATCH, IMAGE_PATCH, film_pieces
from sglang_omni.models.ming.prompt.segments import PlaceholderRun, SpecialToken
from sglang_omni.protocol.errors import InvalidRequest


@dataclass(frozen=True)
class PlaceholderMedium:
    """A decoded medium: uint8 frames [frames, height, width, 3] or float32 samples [samples].
    `seconds` are the times of a video's frame pairs."""

    kind: Kind
    content: Tensor
    content_hash: int
    seconds: tuple[float, ...] = ()


class PlaceholderExpander:
    """Makes room: a placeholder becomes as many tokens as its medium has feature rows."""

    def __init__(self, encode: Callable[[str], list[int]]) -> None:
        """`encode` gives the ids of a text in which special tokens are spelled out."""
        self._encode = encode
        kinds: dict[str, Kind] = {IMAGE_PATCH: "image", FRAME_PATCH: "video", AUDIO_PATCH: "audio"}
        self._kinds = {self._id(token): kind for token, kind in kinds.items()}

    def expand(
        self, ids: Sequence[int], media: Sequence[PlaceholderMedium]
    ) -> tuple[list[int], list[dict[str, Any]]]:
        """The ids with room, and an item for each medium, in the order of their places.

        Media of a kind fill that kind's placeholders in order. Raises `InvalidRequest` when there
        are more or fewer of them than placeholders.
        """
        queues = {kind: iter([m for m in media if m.kind == kind]) for kind in self._kinds.values()}
        room: list[int] = []
        items: list[dict[str, Any]] = []
        for token in ids:
            if token not in self._kinds:
                room.append(token)
                continue
            medium = next(queues[self._kinds[token]], None)
            if medium is None:
                raise InvalidRequest(f"the prompt has more {self._kinds[token]} places than media")
            items.append(self._place(medium, token, room))
        left = [kind for kind, queue in queues.items() if next(queue, None)]
        if left:
            raise InvalidRequest(f"the prompt has fewer {left[0]} places than media")
        return room, items

    def _place(self, medium: PlaceholderMedium, token: int, room: list[int]) -> dict[str, Any]:
        """Append a medium's tokens to `room`, and describe it."""
        item = {
            "modality": medium.kind,
            "content": medium.content,
            "hash": medium.content_hash,
        }
        shape = tuple(medium.content.shape)
        if medium.kind == "audio":
            return item | {"offsets": [_run(room, token, clip_tokens(shape[0]))]}
        grid = patch_grid(shape)
        tokens = picture_tokens(grid)
        if medium.kind == "image":
            return item | {"offsets": [_run(room, token, tokens)], "grid": [grid]}
        runs = list(self._film(PromptVideo(tokens, medium.seconds), token, room))
        return item | {"offsets": runs, "grid": [(1, *grid[1:])] * len(runs)}

    def _film(self, film: PromptVideo, token: int, room: list[int]) -> Iterator[tuple[int, int]]:
        """Append what stands between the tags of a video; yields the runs of its frames."""
        for piece in film_pieces(film):
            match piece:
                case PlaceholderRun(_, count):
                    yield _run(room, token, count)
                case SpecialToken(tag):
                    room.append(self._id(tag))
                case text:
                    room += self._encode(text)

    def _id(self, token: str) -> int:
        (only,) = self._encode(token)
        return only


def _run(room: list[int], token: int, count: int) -> tuple[int, int]:
    room += [token] * count
    return len(room) - count, len(room) - 1
