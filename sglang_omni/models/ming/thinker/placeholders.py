"""Expand the placeholders of a prompt, one per media input, to runs of tokens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from sglang_omni.media.limits import Kind
from sglang_omni.models.chat import PromptVideo
from sglang_omni.models.ming.media_rules import clip_tokens, patch_grid, picture_tokens
from sglang_omni.models.ming.prompt.chat import AUDIO_PATCH, FRAME_PATCH, IMAGE_PATCH, render_video
from sglang_omni.models.ming.prompt.segments import PlaceholderRun, SpecialToken
from sglang_omni.protocol.errors import InvalidRequest


@dataclass(frozen=True)
class PlaceholderMedium:
    """A decoded media input: uint8 frames [frames, height, width, 3] or float32 samples [samples].

    `seconds` are the times of the frame pairs of a video.
    """

    kind: Kind
    content: Tensor
    content_hash: int
    seconds: tuple[float, ...] = ()


class PlaceholderExpander:
    """Replace each placeholder by as many tokens as its media input has feature rows."""

    def __init__(self, encode: Callable[[str], list[int]]) -> None:
        """Create an expander; `encode` tokenizes text in which special tokens are spelled out."""
        self._encode = encode
        kinds: dict[str, Kind] = {IMAGE_PATCH: "image", FRAME_PATCH: "video", AUDIO_PATCH: "audio"}
        self._kinds = {self._token_id(token): kind for token, kind in kinds.items()}

    def expand(
        self, ids: Sequence[int], media: Sequence[PlaceholderMedium]
    ) -> tuple[list[int], list[dict[str, Any]]]:
        """Return the expanded ids, and an item for each media input, in prompt order.

        Media inputs of a kind replace the placeholders of that kind in order.

        Raises:
            InvalidRequest: There are more or fewer media inputs than placeholders.
        """
        queues = {kind: iter([m for m in media if m.kind == kind]) for kind in self._kinds.values()}
        expanded: list[int] = []
        items: list[dict[str, Any]] = []
        for token in ids:
            if token not in self._kinds:
                expanded.append(token)
                continue
            medium = next(queues[self._kinds[token]], None)
            if medium is None:
                kind = self._kinds[token]
                raise InvalidRequest(f"the prompt has more {kind} placeholders than {kind} inputs")
            items.append(self._append_medium(medium, token, expanded))
        unused = [kind for kind, queue in queues.items() if next(queue, None)]
        if unused:
            raise InvalidRequest(
                f"the prompt has fewer {unused[0]} placeholders than {unused[0]} inputs"
            )
        return expanded, items

    def _append_medium(
        self, medium: PlaceholderMedium, token: int, expanded: list[int]
    ) -> dict[str, Any]:
        """Append the tokens of a media input to `expanded` and return its item."""
        item = {
            "modality": medium.kind,
            "content": medium.content,
            "hash": medium.content_hash,
        }
        shape = tuple(medium.content.shape)
        if medium.kind == "audio":
            return item | {"offsets": [_append_run(expanded, token, clip_tokens(shape[0]))]}
        grid = patch_grid(shape)
        tokens = picture_tokens(grid)
        if medium.kind == "image":
            return item | {"offsets": [_append_run(expanded, token, tokens)], "grid": [grid]}
        runs = list(self._append_video(PromptVideo(tokens, medium.seconds), token, expanded))
        return item | {"offsets": runs, "grid": [(1, *grid[1:])] * len(runs)}

    def _append_video(
        self, video: PromptVideo, token: int, expanded: list[int]
    ) -> Iterator[tuple[int, int]]:
        """Append the tokens between the tags of a video; yield the runs of its frames."""
        for piece in render_video(video):
            match piece:
                case PlaceholderRun(_, count):
                    yield _append_run(expanded, token, count)
                case SpecialToken(tag):
                    expanded.append(self._token_id(tag))
                case text:
                    expanded += self._encode(text)

    def _token_id(self, token: str) -> int:
        (token_id,) = self._encode(token)
        return token_id


def _append_run(expanded: list[int], token: int, count: int) -> tuple[int, int]:
    expanded += [token] * count
    return len(expanded) - count, len(expanded) - 1
