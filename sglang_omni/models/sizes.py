"""How large the parts of a checkpoint are when they are served."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class CheckpointSizes:
    """Bytes of each part's weights as they are served, and what the KV cache takes.

    Attributes:
        matrices: Bytes of the thinker's matrices that an FP8 checkpoint stores as FP8; with experts
            in four bits, the bytes of what stands for them.
        rest: Bytes of the thinker's other weights.
        image_encoder: Bytes of the image encoder.
        audio_encoder: Bytes of the audio encoder.
        talker: Bytes of the speech model.
        kv_bytes: Bytes of one token in the KV cache of a rank that holds all heads.
        kv_heads: Number of KV heads, which ranks can split.
        context: Length of the model's context, in tokens.
        fp8: Whether the checkpoint is stored as FP8.
        image: Bytes of the models that draw images; 0 if it draws none.
        int4: Whether its experts are stored in four bits.
        image_matrices: Bytes of those of `image` that an FP8 checkpoint would store as FP8.
    """

    matrices: int
    rest: int
    image_encoder: int
    audio_encoder: int
    talker: int
    kv_bytes: int
    kv_heads: int
    context: int
    fp8: bool
    image: int = 0
    int4: bool = False
    image_matrices: int = 0

    @property
    def thinker(self) -> int:
        """Return the bytes of all weights of the thinker."""
        return self.matrices + self.rest

    def quantized(self) -> "CheckpointSizes":
        """Return the sizes after `sgl-omni quantize --fp8`."""
        if self.is_quantized:
            return self
        image = self.image - self.image_matrices // 2
        matrices = self.matrices // 2
        return replace(self, matrices=matrices, fp8=True, image=image, image_matrices=0)

    @property
    def is_quantized(self) -> bool:
        """Whether the thinker is quantized in any form."""
        return self.fp8 or self.int4

    @property
    def dtype(self) -> str:
        """Return the name of the thinker's form."""
        if self.int4:
            return "four bits"
        return "FP8" if self.fp8 else "bfloat16"
