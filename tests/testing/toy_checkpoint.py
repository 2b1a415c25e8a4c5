"""Writes checkpoints of the toy family."""

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

ARCHITECTURE = "ToyForConditionalGeneration"


def write_toy_checkpoint(folder: Path) -> Path:
    """Write a configuration and a byte-level tokenizer; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"architectures": [ARCHITECTURE], "voices": {"low": 220.0, "high": 440.0}}
    (folder / "config.json").write_text(json.dumps(config))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<media>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
