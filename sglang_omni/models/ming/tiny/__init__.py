"""A complete miniature of the released checkpoint, with random weights of realistic behaviour."""

from sglang_omni.models.ming.tiny.write import write_tiny_checkpoint

__all__ = ["write_tiny_checkpoint"]
