"""Options of the text front end: how written text becomes spoken words."""

from typing import Literal

from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import OPTION_CONFIG, LocalPath


@dataclass(frozen=True, config=OPTION_CONFIG)
class TextOptions:
    """How numbers, dates, links and the like become spoken words."""

    front_end: Literal["default", "reference"] = "default"
    """Rules for speech: default, or those of the model's reference implementation."""

    lexicon: LocalPath | None = None
    """JSON file of pronunciations, written words and what is spoken for them; unset: none."""
