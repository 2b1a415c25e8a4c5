"""The vision encoder of the tiny checkpoint in this process."""

from tests.models.ming.encoders.loaded import one_rank, serving

__all__ = ["one_rank", "serving"]
