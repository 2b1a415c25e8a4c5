"""How large the parts of a checkpoint are when they are served."""

from dataclasses import dataclass, replace

from sglang_omni.models.working_memory import WorkingMemory

# Four bits and a scale of 16 bits for each group of 128, of an element in bfloat16.
INT4_SHARE = (4 + 16 / 128) / 16
FOUR_BITS = "four bits"


@dataclass(frozen=True)
class CheckpointSizes:
    """Bytes of each part's weights as they are served, and what the KV cache takes.

    Attributes:
        matrices: Bytes of the thinker's matrices that an FP8 checkpoint can store as FP8, the head
            among them; with experts in four bits, the bytes of what stands for them.
        rest: Bytes of the thinker's other weights.
        image_encoder: Bytes of the image encoder.
        audio_encoder: Bytes of the audio encoder.
        talker: Bytes of the speech model.
        kv_bytes: Bytes of one token in the KV cache of a rank that holds all heads.
        kv_heads: Number of KV heads, which ranks can split.
        context: Length of the model's context, in tokens.
        fp8: Whether the checkpoint is stored as FP8.
        working: What its engines hold for each unit of work.
        image: Bytes of the models that draw images; 0 if it draws none.
        int4: Whether its experts are stored in four bits.
        image_matrices: Bytes of those of `image` that an FP8 checkpoint would store as FP8.
        expert_matrices: Bytes of those of `matrices` that a four-bit checkpoint would store in four
            bits; 0 if it does.
        kv_dtype: Type of the KV cache's elements.
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
    working: WorkingMemory
    image: int = 0
    int4: bool = False
    image_matrices: int = 0
    expert_matrices: int = 0
    kv_dtype: str = "bfloat16"

    @property
    def thinker(self) -> int:
        """Return the bytes of all weights of the thinker."""
        return self.matrices + self.rest

    def quantized(self) -> "CheckpointSizes":
        """Return the sizes after `sgl-omni quantize --fp8`."""
        if self.is_quantized:
            return self
        image = self.image - self.image_matrices // 2
        return replace(
            self,
            matrices=self.matrices // 2,
            expert_matrices=self.expert_matrices // 2,
            fp8=True,
            image=image,
            image_matrices=0,
        )

    def in_four_bits(self) -> "CheckpointSizes":
        """Return the sizes after `sgl-omni quantize --int4` of the bfloat16 checkpoint."""
        if self.int4 or not self.expert_matrices:
            return self
        in_fp8 = self.quantized()
        packed = int(in_fp8.expert_matrices * 2 * INT4_SHARE)
        return replace(
            in_fp8,
            matrices=in_fp8.matrices - in_fp8.expert_matrices + packed,
            expert_matrices=0,
            fp8=False,
            int4=True,
        )

    def with_kv_cache(self, dtype: str) -> "CheckpointSizes":
        """Return the sizes with a KV cache of this option; "auto" changes nothing."""
        if dtype == "auto":
            return self
        return replace(self, kv_bytes=self.kv_bytes // 2, kv_dtype=dtype)

    @property
    def is_quantized(self) -> bool:
        """Whether the thinker is quantized in any form."""
        return self.fp8 or self.int4

    @property
    def dtype(self) -> str:
        """Return the name of the thinker's form."""
        if self.int4:
            return FOUR_BITS
        return "FP8" if self.fp8 else "bfloat16"
