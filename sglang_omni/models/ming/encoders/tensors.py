"""Names and shapes of all encoder tensors of a checkpoint."""

from collections.abc import Iterator

from sglang_omni.models.ming.config import AudioEncoderConfig, VisionConfig

Shapes = Iterator[tuple[str, tuple[int, ...]]]

VISION_PREFIXES = ("vision.", "linear_proj.")
AUDIO_PREFIXES = ("audio.", "linear_proj_audio.")
POSITIONAL_EMBEDDING = "audio.positional_embedding"
# The released model computes these three outputs and discards them.
DEEPSTACK_PREFIX = "vision.deepstack_merger_list."


def strip_encoder_prefix(name: str) -> str | None:
    """Return an encoder tensor name without the optional leading `model.`, None for others."""
    stripped = name.removeprefix("model.")
    return stripped if stripped.startswith(VISION_PREFIXES + AUDIO_PREFIXES) else None


def list_vision_tensors(config: VisionConfig, hidden: int) -> dict[str, tuple[int, ...]]:
    """Return the tensor shapes of the vision transformer, its mergers and its projector."""
    shapes = dict(_list_vision(config))
    shapes |= _list_linear("linear_proj.0", config.out_hidden_size, hidden)
    return shapes | dict(_list_linear("linear_proj.2", hidden, hidden))


def list_audio_tensors(config: AudioEncoderConfig, hidden: int) -> dict[str, tuple[int, ...]]:
    """Return the tensor shapes of the audio tower and its projector to `hidden`."""
    shapes = dict(_list_audio_tower(config))
    shapes |= _list_convolution(
        "linear_proj_audio.0", config.n_state, hidden, config.ds_kernel_size
    )
    return shapes | dict(_list_linear("linear_proj_audio.3", hidden, hidden))


def _list_vision(config: VisionConfig) -> Shapes:
    hidden, width = config.hidden_size, config.intermediate_size
    merged, out = config.merged_size, config.out_hidden_size
    patch = (config.temporal_patch_size, config.patch_size, config.patch_size)
    yield "vision.patch_embed.proj.weight", (hidden, config.in_channels, *patch)
    yield "vision.patch_embed.proj.bias", (hidden,)
    yield "vision.pos_embed.weight", (config.num_position_embeddings, hidden)
    for index in range(config.depth):
        block = f"vision.blocks.{index}"
        yield from _list_norm(f"{block}.norm1", hidden)
        yield from _list_norm(f"{block}.norm2", hidden)
        yield from _list_linear(f"{block}.attn.qkv", hidden, 3 * hidden)
        yield from _list_linear(f"{block}.attn.proj", hidden, hidden)
        yield from _list_linear(f"{block}.mlp.linear_fc1", hidden, width)
        yield from _list_linear(f"{block}.mlp.linear_fc2", width, hidden)
    yield from _list_merger("vision.merger", hidden, merged, out)
    for index in range(len(config.deepstack_visual_indexes)):
        # These normalise after the merge; the main merger normalises before it.
        yield from _list_merger(f"{DEEPSTACK_PREFIX}{index}", merged, merged, out)


def _list_merger(name: str, norm_size: int, merged: int, out: int) -> Shapes:
    yield from _list_norm(f"{name}.norm", norm_size)
    yield from _list_linear(f"{name}.linear_fc1", merged, merged)
    yield from _list_linear(f"{name}.linear_fc2", merged, out)


def _list_audio_tower(config: AudioEncoderConfig) -> Shapes:
    state = config.n_state
    yield from _list_convolution("audio.conv1", config.n_mels, state, 3)
    yield from _list_convolution("audio.conv2", state, state, 3)
    yield POSITIONAL_EMBEDDING, (config.n_ctx, state)
    for index in range(config.n_layer):
        block = f"audio.blocks.{index}"
        yield from _list_norm(f"{block}.attn_ln", state)
        yield from _list_norm(f"{block}.mlp_ln", state)
        for part in ("query", "value", "out"):
            yield from _list_linear(f"{block}.attn.{part}", state, state)
        yield f"{block}.attn.key.weight", (state, state)
        yield from _list_linear(f"{block}.mlp.0", state, 4 * state)
        yield from _list_linear(f"{block}.mlp.2", 4 * state, state)
    yield from _list_norm("audio.ln_post", state)


def _list_norm(name: str, size: int) -> Shapes:
    yield f"{name}.weight", (size,)
    yield f"{name}.bias", (size,)


def _list_linear(name: str, size: int, out: int) -> Shapes:
    yield f"{name}.weight", (out, size)
    yield f"{name}.bias", (out,)


def _list_convolution(name: str, size: int, out: int, kernel: int) -> Shapes:
    yield f"{name}.weight", (out, size, kernel)
    yield f"{name}.bias", (out,)
