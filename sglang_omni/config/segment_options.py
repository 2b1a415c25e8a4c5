"""Options of the segments that an answer is spoken in."""

from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import OPTION_CONFIG, Count, Seconds
from sglang_omni.pipeline.segment import SegmentSettings


@dataclass(frozen=True, config=OPTION_CONFIG)
class SegmentOptions(SegmentSettings):
    """Where an answer is cut into segments to speak; lengths count words and CJK characters."""

    min_tokens: Count = SegmentSettings.min_tokens
    """Minimum length of a segment that ends at the end of a sentence."""

    max_tokens: Count = SegmentSettings.max_tokens
    """Maximum length of a segment."""

    first_min_tokens: Count = SegmentSettings.first_min_tokens
    """Minimum length of a first segment that is cut before the end of its sentence."""

    first_max_wait_s: Seconds = SegmentSettings.first_max_wait_s
    """Seconds after which the first segment is cut before the end of its sentence."""
