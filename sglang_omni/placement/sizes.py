"""How large the parts of a checkpoint are, from the headers of its files. No torch."""

from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from safetensors import safe_open

from sglang_omni.models.checkpoint_files import list_shard_files
from sglang_omni.models.ming.config import read_json
from sglang_omni.models.ming.encoders.tensors import AUDIO_PREFIXES, strip_encoder_prefix
from sglang_omni.models.ming.thinker.fp8_layout import is_block_fp8, is_quantized
from sglang_omni.protocol.errors import CheckpointError

ELEMENT_BYTES = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "I64": 8, "I32": 4}
# Weights that are not FP8 are served in bfloat16, whatever the file holds.
SERVED_BYTES = 2


@dataclass(frozen=True)
class Sizes:
    """Bytes of each part's weights as they are served.

    `matrices` are those of the thinker that FP8 stores in eight bits, `rest` its others.
    `kv_bytes` is what one token takes in the KV cache of one rank, if every rank holds all heads;
    `kv_heads` of them can be split.
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

    @property
    def thinker(self) -> int:
        """All weights of the thinker."""
        return self.matrices + self.rest

    def quantised(self) -> "Sizes":
        """What `sgl-omni quantize --fp8` would make of these."""
        return self if self.fp8 else replace(self, matrices=self.matrices // 2, fp8=True)


def read_sizes(checkpoint: Path) -> Sizes:
    """Add up the headers of a checkpoint's files. Raises `CheckpointError`."""
    config = read_json(checkpoint / "config.json")
    fp8 = is_block_fp8(config.get("quantization_config"))
    parts = {"matrices": 0, "rest": 0, "image_encoder": 0, "audio_encoder": 0}
    for path in list_shard_files(checkpoint):
        for name, size in _stored(path, fp8):
            parts[_part(name)] += size
    text = config["llm_config"]
    head = text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]
    layers, kv_heads = text["num_hidden_layers"], text["num_key_value_heads"]
    return Sizes(
        **parts,
        talker=sum(size for path in _speech_files(checkpoint) for _, size in _stored(path, False)),
        kv_bytes=2 * SERVED_BYTES * layers * kv_heads * head,
        kv_heads=kv_heads,
        context=text["max_position_embeddings"],
        fp8=fp8,
    )


def _part(name: str) -> str:
    encoder = strip_encoder_prefix(name)
    if encoder is not None:
        return "audio_encoder" if encoder.startswith(AUDIO_PREFIXES) else "image_encoder"
    return "matrices" if is_quantized(name) else "rest"


def _speech_files(checkpoint: Path) -> list[Path]:
    return sorted((checkpoint / "talker").rglob("*.safetensors"))


def _stored(path: Path, fp8: bool) -> list[tuple[str, int]]:
    """Names in a file and the bytes each will take."""
    try:
        with safe_open(path, framework="numpy") as file:
            views = [(name, file.get_slice(name)) for name in file.keys()]  # noqa: SIM118
            return [
                (name, prod(view.get_shape()) * _bytes(name, view.get_dtype(), fp8))
                for name, view in views
            ]
    except (OSError, KeyError) as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error


def _bytes(name: str, dtype: str, fp8: bool) -> int:
    if fp8 and (is_quantized(name) or name.endswith("_scale_inv")):
        return ELEMENT_BYTES[dtype]
    return min(SERVED_BYTES, ELEMENT_BYTES[dtype])
