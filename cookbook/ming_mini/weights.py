"""Weights between training runs: float32 safetensors in pieces small enough to transfer."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

PIECE_BYTES = 15 * 2**20


def save_pieces(
    tensors: Mapping[str, Tensor], folder: Path, name: str, piece_bytes: int = PIECE_BYTES
) -> list[Path]:
    """Write `folder/name-1.safetensors`, `-2` and so on.

    The tensors of each have at most `piece_bytes`, or it has one tensor. Another program may read
    the pieces at any time: each replaces its predecessor when it is complete.
    """
    paths = []
    for number, names in enumerate(_pieces(tensors, piece_bytes), 1):
        path = folder / f"{name}-{number}.safetensors"
        partial = path.with_suffix(".partial")
        save_file({key: tensors[key].detach().cpu().contiguous() for key in names}, partial)
        partial.replace(path)
        paths.append(path)
    for old in set(folder.glob(f"{name}-*.safetensors")).difference(paths):
        old.unlink()
    return paths


def to_bf16(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors with their numbers in bf16, for a machine that returns only small files."""
    return _to_type(tensors, torch.bfloat16)


def to_float32(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors with their numbers in float32, as a training stores them."""
    return _to_type(tensors, torch.float32)


def _to_type(tensors: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    return {
        name: one.to(dtype) if one.is_floating_point() else one for name, one in tensors.items()
    }


def average_of(name: str, shares: Sequence[tuple[float, Mapping[str, Tensor]]]) -> Tensor:
    """Return the average of one tensor by shares, added up in float32, in the type of the first.

    Raises:
        ValueError: The tensor is missing somewhere, or has another shape.
    """
    found = [tensors.get(name) for _, tensors in shares]
    parts = [tensor for tensor in found if tensor is not None]
    if len(parts) < len(shares) or len({part.shape for part in parts}) > 1:
        raise ValueError(f"the weights do not agree on {name}")
    total = torch.zeros_like(parts[0], dtype=torch.float32)
    for (share, _), part in zip(shares, parts, strict=True):
        total += share * part.float()
    return total.to(parts[0].dtype)


def load_weights(place: Path, name: str) -> dict[str, Tensor]:
    """Return the tensors of a file, or those of the pieces `name` in a folder."""
    return load_file(place) if place.is_file() else load_pieces(place, name)


def load_pieces(folder: Path, name: str) -> dict[str, Tensor]:
    """Return the tensors of every piece. Raises `FileNotFoundError` if there is none."""
    paths = sorted(folder.glob(f"{name}-*.safetensors"))
    if not paths:
        raise FileNotFoundError(f"{folder}/{name}-*.safetensors")
    return {key: tensor for path in paths for key, tensor in load_file(path).items()}


def _pieces(tensors: Mapping[str, Tensor], piece_bytes: int) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    size = 0
    for name, tensor in tensors.items():
        if pieces[-1] and size + tensor.nbytes > piece_bytes:
            pieces.append([])
            size = 0
        pieces[-1].append(name)
        size += tensor.nbytes
    return pieces


def save_state(state: Mapping[str, Any], folder: Path, name: str) -> None:
    """Write the state that a run needs to continue as `folder/name.pt`.

    A visible file is complete.
    """
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{name}.partial"
    torch.save(dict(state), partial)
    partial.rename(folder / f"{name}.pt")


def load_state(folder: Path, name: str, device: torch.device) -> dict[str, Any] | None:
    """Return what `save_state` wrote, or None if there is nothing."""
    path = folder / f"{name}.pt"
    if not path.exists():
        return None
    state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    return state


class Average:
    """The exponential moving average of a module's floating-point tensors."""

    def __init__(self, module: nn.Module, decay: float = 0.999) -> None:
        self._decay, self._steps = decay, 0
        # The module's own memory, which its training writes to.
        self._source = [value.detach() for value in module.state_dict().values()]
        self.tensors = {key: value.detach().clone() for key, value in module.state_dict().items()}

    @torch.no_grad()
    def update(self) -> None:
        """Add the module's present weights; early on the average is short."""
        self._steps += 1
        decay = min(self._decay, self._steps / (self._steps + 10))
        torch._foreach_lerp_(list(self.tensors.values()), self._source, 1 - decay)

    def state_dict(self) -> dict[str, Any]:
        """Return the state for `load_state_dict`."""
        return {"tensors": self.tensors, "steps": self._steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from another's state."""
        self._steps = state["steps"]
        for name, tensor in self.tensors.items():
            tensor.copy_(state["tensors"][name])
