"""The encoders' tensors: every name and shape that a checkpoint must hold."""

from collections.abc import Iterator

from sglang_omni.models.ming.config import AudioEncoderConfig, VisionConfig

Shapes = Iterator[tuple[str, tuple[int, ...]]]

VISION_PREFIXES = ("vision.", "linear_proj.")
AUDIO_PREFIXES = ("audio.", "linear_proj_audio.")
POSITIONS = "audio.positional_embedding"
# The released model computes these three outputs and drops them.
DEEPSTACK = "vision.deepstack_merger_list."


def encoder_name(name: str) -> str | None:
    """The name of an encoder's tensor without the optional leading `model.`, None for others."""
    bare = name.removeprefix("model.")
    return bare if bare.startswith(VISION_PREFIXES + AUDIO_PREFIXES) else None


def vision_tensors(config: VisionConfig, hidden: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the vision transformer, its mergers and its projector to `hidden`."""
    shapes = dict(_vision(config))
    shapes |= _linear("linear_proj.0", config.out_hidden_size, hidden)
    return shapes | dict(_linear("linear_proj.2", hidden, hidden))


def audio_tensors(config: AudioEncoderConfig, hidden: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the audio tower and its projector to `hidden`."""
    shapes = dict(_whisper(config))
    shapes |= _convolution("linear_proj_audio.0", config.n_state, hidden, config.ds_kernel_size)
    return shapes | dict(_linear("linear_proj_audio.3", hidden, hidden))


def _vision(config: VisionConfig) -> Shapes:
    hidden, width = config.hidden_size, config.intermediate_size
    merged, out = config.merged_size, config.out_hidden_size
    patch = (config.temporal_patch_size, config.patch_size, config.patch_size)
    yield "vision.patch_embed.proj.weight", (hidden, config.in_channels, *patch)
    yield "vision.patch_embed.proj.bias", (hidden,)
    yield "vision.pos_embed.weight", (config.num_position_embeddings, hidden)
    for index in range(config.depth):
        block = f"vision.blocks.{index}"
        yield from _norm(f"{block}.norm1", hidden)
        yield from _norm(f"{block}.norm2", hidden)
        yield from _linear(f"{block}.attn.qkv", hidden, 3 * hidden)
        yield from _linear(f"{block}.attn.proj", hidden, hidden)
        yield from _linear(f"{block}.mlp.linear_fc1", hidden, width)
        yield from _linear(f"{block}.mlp.linear_fc2", width, hidden)
    yield from _merger("vision.merger", hidden, merged, out)
    for index in range(len(config.deepstack_visual_indexes)):
        # These normalise after the merge, the last one before it.
        yield from _merger(f"{DEEPSTACK}{index}", merged, merged, out)


def _merger(name: str, normed: int, merged: int, out: int) -> Shapes:
    yield from _norm(f"{name}.norm", normed)
    yield from _linear(f"{name}.linear_fc1", merged, merged)
    yield from _linear(f"{name}.linear_fc2", merged, out)


def _whisper(config: AudioEncoderConfig) -> Shapes:
    state = config.n_state
    yield from _convolution("audio.conv1", config.n_mels, state, 3)
    yield from _convolution("audio.conv2", state, state, 3)
    yield POSITIONS, (config.n_ctx, state)
    for index in range(config.n_layer):
        block = f"audio.blocks.{index}"
        yield from _norm(f"{block}.attn_ln", state)
        yield from _norm(f"{block}.mlp_ln", state)
        for part in ("query", "value", "out"):
            yield from _linear(f"{block}.attn.{part}", state, state)
        yield f"{block}.attn.key.weight", (state, state)
        yield from _linear(f"{block}.mlp.0", state, 4 * state)
        yield from _linear(f"{block}.mlp.2", 4 * state, state)
    yield from _norm("audio.ln_post", state)


def _norm(name: str, size: int) -> Shapes:
    yield f"{name}.weight", (size,)
    yield f"{name}.bias", (size,)


def _linear(name: str, size: int, out: int) -> Shapes:
    yield f"{name}.weight", (out, size)
    yield f"{name}.bias", (out,)


def _convolution(name: str, size: int, out: int, kernel: int) -> Shapes:
    yield f"{name}.weight", (out, size, kernel)
    yield f"{name}.bias", (out,)
