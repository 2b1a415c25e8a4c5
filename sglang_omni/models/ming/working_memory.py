"""What Ming's engines hold for each unit of work, counted from their code. Does not import torch.

Sums are of the tensors that are alive at the same time, at the point where they are most. Where the
modules run on PyTorch's meta device, tests count the same with them
(`tests/models/ming/test_working_memory.py`). None has been measured on a GPU. What an allocator and
CUDA add is the placement's.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sglang_omni.models.ming.config import (
    AudioEncoderConfig,
    DiTConfig,
    EncoderConfig,
    TalkerConfig,
    VAEConfig,
    VisionConfig,
    read_encoder_config,
    read_talker_config,
    read_vae_config,
)
from sglang_omni.models.ming.media_rules import MEL_HOP, RULES, SAMPLE_RATE
from sglang_omni.models.working_memory import (
    ImageEncoderMemory,
    TalkerMemory,
    ThinkerMemory,
    WorkingMemory,
)

# Bytes of an element of weights and activations, and of float32.
HALF, SINGLE = 2, 4
# The largest bucket of `encoders/graphs.py`, which a test compares.
GRAPH_PATCHES = 8_192
# Windows of the inverse STFT overlap by this many hops.
HOPS_PER_WINDOW = 4


def read_working_memory(checkpoint: Path, text: Mapping[str, Any]) -> WorkingMemory:
    """Return what the engines of a checkpoint hold.

    Args:
        checkpoint: The model folder.
        text: `llm_config` of its `config.json`.

    Raises:
        CheckpointError: A configuration is missing or malformed.
    """
    talker = checkpoint / "talker"
    return build_working_memory(
        text,
        read_encoder_config(checkpoint),
        read_talker_config(talker),
        read_vae_config(talker / "vae"),
    )


def build_working_memory(
    text: Mapping[str, Any], encoders: EncoderConfig, talker: TalkerConfig, vae: VAEConfig
) -> WorkingMemory:
    """Return what engines of these shapes hold."""
    return WorkingMemory(
        thinker=count_thinker(text),
        image_encoder=count_image_encoder(encoders.vision),
        audio_second=count_audio_second(encoders.audio),
        talker=count_talker(talker, vae),
    )


def count_thinker(text: Mapping[str, Any]) -> ThinkerMemory:
    """Count the thinker's tensors.

    A token of a prefill has its row, the residual stream, and four more of that width while its
    experts are computed: for each expert gate and up, their product, and the output
    (`int4/experts.py`; SGLang's own experts hold less). A row of a step has logits in bfloat16 and
    float32, their probabilities, sorted ones with their order, penalties and biases; a row with
    log probabilities the first three.
    """
    hidden, vocabulary = text["hidden_size"], text["vocab_size"]
    experts = text["num_experts_per_tok"] + text["num_shared_experts"]
    expert_row = 3 * text["moe_intermediate_size"] + hidden
    sorted_row = SINGLE + 8
    return ThinkerMemory(
        prompt_token=HALF * (6 * hidden + experts * expert_row),
        batch_row=vocabulary * (HALF + 4 * SINGLE + sorted_row),
        logprob_row=vocabulary * (HALF + 2 * SINGLE),
        feature_row=HALF * hidden,
    )


def count_image_encoder(config: VisionConfig) -> ImageEncoderMemory:
    """Count the image encoder's tensors.

    A patch has its angles, and in the MLP of a block six rows of the block's width and two of the
    MLP's. Before the blocks it has its pixels in uint8, and twice in float32, which is more if the
    model is small.
    """
    block = HALF * (6 * config.hidden_size + 2 * config.intermediate_size)
    pixels = (1 + 2 * SINGLE) * config.patch_width
    return ImageEncoderMemory(
        patch=max(SINGLE * config.head_dim + block, pixels),
        graph_patches=GRAPH_PATCHES,
        patch_pixels=config.patch_size**2,
        max_pixels=RULES.image.max_pixels,
    )


def count_audio_second(config: AudioEncoderConfig) -> int:
    """Count the audio encoder's tensors of a second.

    A state, which is two mel frames, has four rows of its width and two of the MLP's, which is four
    times as wide. A clip has its samples and two copies of its mel frames in float32.
    """
    frames = SAMPLE_RATE // MEL_HOP
    states = frames // 2
    mel = SINGLE * (SAMPLE_RATE + 2 * frames * config.n_mels)
    return mel + HALF * states * (4 + 2 * 4) * config.n_state


def count_talker(talker: TalkerConfig, vae: VAEConfig) -> TalkerMemory:
    """Count the talker's tensors on a GPU (`speech/fast`)."""
    llm, backbone = talker.llm, vae.decoder.backbone
    frames = talker.patch_size * vae.patch_size
    window = (backbone.window or 0) + frames
    kept_samples = (HOPS_PER_WINDOW - 1) * vae.decoder.frame
    kept_rows = backbone.num_hidden_layers * backbone.num_key_value_heads * window
    # Queries, keys and values are packed together, beside the modules that are loaded.
    packed = sum(
        3 * stack.hidden_size**2 * stack.depth for stack in (talker.flow, talker.aggregator)
    )
    return TalkerMemory(
        position=2 * HALF * llm.num_hidden_layers * llm.num_key_value_heads * llm.head_dim,
        slot=2 * HALF * kept_rows * backbone.head_dim + 2 * SINGLE * kept_samples,
        step_stream=_count_flow_stream(talker),
        vocoder_stream=_count_vocoder_stream(vae, frames),
        prompt_pair=3 * SINGLE * llm.num_attention_heads,
        copies=HALF * packed,
        fp8_copies=_count_flow_weights(talker.flow),
    )


def _count_flow_stream(talker: TalkerConfig) -> int:
    """Count a step's rows of one stream: two sequences for guidance, each a head token and latents.

    A row is three times as wide as the flow model, has queries, keys and values twice (those of the
    first block are kept), and the MLP's input and output.
    """
    rows = 2 * (1 + talker.history_patch_size + talker.patch_size)
    return HALF * rows * talker.flow.hidden_size * (3 + 2 * 3 + 2 * talker.flow.mlp_ratio)


def _count_vocoder_stream(vae: VAEConfig, frames: int) -> int:
    """Count the vocoder's frames of one stream: its layers, then spectra and samples."""
    backbone = vae.decoder.backbone
    size = HOPS_PER_WINDOW * vae.decoder.frame
    layer = HALF * 3 * (backbone.hidden_size + backbone.intermediate_size)
    # The output layer's row, a complex spectrum of half as many bins, and windowed samples twice.
    spectrum = (HALF + SINGLE + 2 * SINGLE) * (size + 2)
    return frames * (layer + spectrum)


def _count_flow_weights(config: DiTConfig) -> int:
    """Count the weights of the flow model's blocks."""
    return config.depth * config.hidden_size**2 * (4 + 2 * config.mlp_ratio)
