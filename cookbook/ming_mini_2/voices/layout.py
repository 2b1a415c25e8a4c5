"""The layout of the next Ming-mini's talker folder."""

from pathlib import Path
from tempfile import TemporaryDirectory

from cookbook.ming_mini.layout import SpeechLayout, write_layout
from cookbook.ming_mini_2.voices import configs
from cookbook.ming_mini_2.voices.tokenizer import build_tokenizer
from sglang_omni.models.ming.speech.prompt import PromptTokenizer

VOICES = SpeechLayout(
    build_tokenizer, configs.talker_llm_config, configs.talker_config, configs.vae_config
)


def prompt_tokenizer() -> PromptTokenizer:
    """Return the tokenizer as the product reads it."""
    with TemporaryDirectory() as name:
        write_layout(Path(name), VOICES)
        return PromptTokenizer(Path(name))
