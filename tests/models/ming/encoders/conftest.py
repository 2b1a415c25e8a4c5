"""The encoders of the tiny checkpoint."""

from tests.models.ming.encoders.loaded import audio, one_rank, plain, reference, serving

__all__ = ["audio", "one_rank", "plain", "reference", "serving"]
