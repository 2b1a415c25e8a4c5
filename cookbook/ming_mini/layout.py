"""The talker folder without its weights: configurations and tokenizer, in the released layout."""

import json
import tempfile
from pathlib import Path
from typing import Any

from cookbook.ming_mini import configs
from cookbook.ming_mini.tokenizer import build_tokenizer
from sglang_omni.models.ming.config import (
    TalkerConfig,
    VAEConfig,
    read_talker_config,
    read_vae_config,
)
from sglang_omni.models.ming.tiny.configs import talker_tokenizer_config


def write_layout(talker: Path) -> None:
    """Write every JSON file of the folder `talker` and the tokenizer's own."""
    llm, vae = talker / "llm", talker / "vae"
    for folder in (llm, vae):
        folder.mkdir(parents=True, exist_ok=True)
    tokenizer = build_tokenizer()
    (llm / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    tokenizer.model.save(str(llm))
    _write(llm / "tokenizer_config.json", talker_tokenizer_config(tokenizer))
    _write(llm / "config.json", configs.talker_llm_config(tokenizer))
    _write(talker / "config.json", configs.talker_config())
    _write(vae / "config.json", configs.vae_config())


def configurations() -> tuple[TalkerConfig, VAEConfig]:
    """The configurations as the product reads them."""
    with tempfile.TemporaryDirectory() as name:
        write_layout(Path(name))
        return read_talker_config(Path(name)), read_vae_config(Path(name) / "vae")


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
