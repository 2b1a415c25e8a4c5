"""The talker folder without its weights: configurations and tokenizer, in the released layout."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from cookbook.ming_mini import configs
from cookbook.ming_mini.tokenizer import build_tokenizer
from sglang_omni.models.ming.config import (
    TalkerConfig,
    VAEConfig,
    read_talker_config,
    read_vae_config,
)
from sglang_omni.models.ming.tiny.configs import Json, build_talker_tokenizer_config
from sglang_omni.models.ming.tiny.files import write_json


@dataclass(frozen=True)
class SpeechLayout:
    """What a recipe writes beside its weights.

    `talker_llm` makes `talker/llm/config.json` from the tokenizer.
    """

    build_tokenizer: Callable[[], Tokenizer]
    talker_llm: Callable[[Tokenizer], Json]
    talker: Callable[[], Json]
    vae: Callable[[], Json]


MINI = SpeechLayout(
    build_tokenizer, configs.talker_llm_config, configs.talker_config, configs.vae_config
)


def write_layout(talker: Path, layout: SpeechLayout = MINI) -> None:
    """Write every JSON file of the folder `talker` and the tokenizer's own."""
    llm, vae = talker / "llm", talker / "vae"
    for folder in (llm, vae):
        folder.mkdir(parents=True, exist_ok=True)
    tokenizer = layout.build_tokenizer()
    (llm / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    tokenizer.model.save(str(llm))
    write_json(llm / "tokenizer_config.json", build_talker_tokenizer_config(tokenizer))
    write_json(llm / "config.json", layout.talker_llm(tokenizer))
    write_json(talker / "config.json", layout.talker())
    write_json(vae / "config.json", layout.vae())


def configurations(layout: SpeechLayout = MINI) -> tuple[TalkerConfig, VAEConfig]:
    """Return the configurations as the product reads them."""
    with tempfile.TemporaryDirectory() as name:
        write_layout(Path(name), layout)
        return read_talker_config(Path(name)), read_vae_config(Path(name) / "vae")
