"""Begin a training with the weights of a packed checkpoint of other sizes.

Tensors whose shapes agree are copied. A layer that the checkpoint lacks starts as an identity: what
it adds to the stream is zero. A token that it lacks starts as the mean of the tokens in which its
tokenizer writes it.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from cookbook.ming_mini.thinker.model import RESIDUAL, TrainableThinker, checkpoint_tensors
from sglang_omni.models.weights import TensorFolder

EMBEDDINGS = ("word_embeddings.weight", "lm_head.weight")
"""Tables with a row for every token."""


@dataclass(frozen=True)
class Started:
    """The names of tensors by how they begin; `new` are as they were initialised."""

    copied: tuple[str, ...]
    mapped: tuple[str, ...]
    identity: tuple[str, ...]
    new: tuple[str, ...]


@torch.no_grad()
def start_from(model: TrainableThinker, folder: Path, checkpoint: Path) -> Started:
    """Load what a packed checkpoint has into a model whose layout is in `folder`."""
    packed = TensorFolder(checkpoint)
    new, old = (Tokenizer.from_file(str(one / "tokenizer.json")) for one in (folder, checkpoint))
    rows = token_rows(new, old)
    found: dict[str, list[str]] = {"copied": [], "mapped": [], "identity": [], "new": []}
    for name, tensor in checkpoint_tensors(model):
        found[_start(name, tensor, packed, rows)].append(name)
    return Started(**{way: tuple(names) for way, names in found.items()})


def _start(name: str, tensor: Tensor, packed: TensorFolder, rows: list[list[int]]) -> str:
    """Give a tensor its first value. Returns the way.

    Rows of a table beyond the last token stay as they were initialised.
    """
    if name not in packed:
        if ".layers." in name and name.endswith(RESIDUAL):
            tensor.zero_()
            return "identity"
        return "new"
    old = packed[name].to(tensor.device, tensor.dtype)
    if name.endswith(EMBEDDINGS) and old.shape[1:] == tensor.shape[1:]:
        for row, sources in enumerate(rows):
            tensor[row] = old[sources].mean(0)
        return "mapped"
    if old.shape != tensor.shape:
        return "new"
    tensor.copy_(old)
    return "copied"


def token_rows(new: Tokenizer, old: Tokenizer) -> list[list[int]]:
    """Return for every token of `new` the tokens of `old` that it begins with.

    Neither has merges: a word that `old` lacks is written there as its bytes.
    """
    known = old.get_vocab(with_added_tokens=True)
    tokens = (new.id_to_token(number) for number in range(new.get_vocab_size()))
    return [[known[name]] if name in known else [known[byte] for byte in name] for name in tokens]
