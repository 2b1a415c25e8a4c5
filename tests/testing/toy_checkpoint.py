"""Checkpoints of the toy family, and the metadata of a package that brings it."""

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from sglang_omni.models.pending_call import CALL_TOKENS
from sglang_omni.models.registry import GROUP

ARCHITECTURE = "ToyForConditionalGeneration"
ENTRY = "tests.testing.toy_family:FAMILY"


def write_toy_checkpoint(folder: Path) -> Path:
    """Write a configuration and a tokenizer whose tokens are bytes; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"architectures": [ARCHITECTURE], "voices": {"low": 220.0, "high": 440.0}}
    (folder / "config.json").write_text(json.dumps(config))
    # In the order of their characters: printable bytes stand for themselves, others for U+0100 on.
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(dict(zip(alphabet, printable + others, strict=True)), []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<media>", *CALL_TOKENS])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def install_entry_point(folder: Path) -> Path:
    """Write the metadata of a package that brings the toy family; return the folder."""
    metadata = folder / "toy-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    entry = f"[{GROUP}]\n{ARCHITECTURE} = {ENTRY}\n"
    (metadata / "entry_points.txt").write_text(entry)
    return folder
