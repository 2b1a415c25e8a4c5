"""What engines hold on a GPU for each unit of their work, besides weights and KV cache."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ThinkerMemory:
    """Bytes that a rank of the thinker holds.

    Attributes:
        prompt_token: For each token of a prefill pass: its activations.
        batch_row: For each request of a step: its logits, and what sampling makes of them.
        logprob_row: For each token of a prompt whose logits are computed at once.
        feature_row: For each token that is a feature of a medium.
    """

    prompt_token: int
    batch_row: int
    logprob_row: int
    feature_row: int


@dataclass(frozen=True)
class ImageEncoderMemory:
    """Bytes that the image encoder holds.

    Attributes:
        patch: For each patch of a forward pass.
        graph_patches: Patches of its largest CUDA graph.
        patch_pixels: Pixels of a patch.
        max_pixels: Pixels of the largest single picture, unless an option says otherwise.
    """

    patch: int
    graph_patches: int
    patch_pixels: int
    max_pixels: int


@dataclass(frozen=True)
class TalkerMemory:
    """Bytes that the talker holds.

    Attributes:
        position: For each position of a slot's context: keys and values.
        slot: For each slot besides: the vocoder's window and overlap.
        step_stream: For each stream of a step: the activations of the flow model.
        vocoder_stream: The same of the vocoder, which runs beside it.
        prompt_pair: For each pair of positions of a prefill pass: attention scores.
        copies: Weights that are packed in a second copy.
        fp8_copies: Weights in FP8, which option `talker.fp8` adds.
    """

    position: int
    slot: int
    step_stream: int
    vocoder_stream: int
    prompt_pair: int
    copies: int
    fp8_copies: int


@dataclass(frozen=True)
class WorkingMemory:
    """What the engines of a checkpoint hold. `audio_second` is of a pass of the audio encoder."""

    thinker: ThinkerMemory
    image_encoder: ImageEncoderMemory
    audio_second: int
    talker: TalkerMemory
