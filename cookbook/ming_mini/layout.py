"""The talker folder without its weights: configurations and tokenizer, in the released layout."""

import tempfile
from pathlib import Path

from cookbook.ming_mini import configs
from cookbook.ming_mini.tokenizer import build_tokenizer
from sglang_omni.models.ming.config import (
    TalkerConfig,
    VAEConfig,
    read_talker_config,
    read_vae_config,
)
from sglang_omni.models.ming.tiny.configs import build_talker_tokenizer_config
from sglang_omni.models.ming.tiny.files import write_json


def write_layout(talker: Path) -> None:
    """Write every JSON file of the folder `talker` and the tokenizer's own."""
    llm, vae = talker / "llm", talker / "vae"
    for folder in (llm, vae):
        folder.mkdir(parents=True, exist_ok=True)
    tokenizer = build_tokenizer()
    (llm / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    tokenizer.model.save(str(llm))
    write_json(llm / "tokenizer_config.json", build_talker_tokenizer_config(tokenizer))
    write_json(llm / "config.json", configs.talker_llm_config(tokenizer))
    write_json(talker / "config.json", configs.talker_config())
    write_json(vae / "config.json", configs.vae_config())


def configurations() -> tuple[TalkerConfig, VAEConfig]:
    """Return the configurations as the product reads them."""
    with tempfile.TemporaryDirectory() as name:
        write_layout(Path(name))
        return read_talker_config(Path(name)), read_vae_config(Path(name) / "vae")
