"""Plan the placement of engines on GPUs. Pure functions.

The thinker takes the largest number of ranks that leaves at least one GPU free. The other
engines use the free GPUs, so that speech and images do not slow down text. If no GPU is free, all
engines share. Constraints of the user are kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.models.sizes import CheckpointSizes

GIB = 1 << 30
# Besides its weights and KV cache, a rank of the thinker holds a CUDA context, CUDA graphs, the
# activations of a prefill and SGLang's buffers.
THINKER_RESERVE = 7 * GIB
# The same for the other engines: context, largest forward pass, and the talker's slots and graphs.
IMAGE_RESERVE, AUDIO_RESERVE, TALKER_RESERVE = 6 * GIB, 3 * GIB, 8 * GIB
# The image engine's activations are those of a few large images.
DRAWING_RESERVE = 6 * GIB
# The fraction of a GPU's memory that remains after the driver and fragmentation.
USABLE_FRACTION = 0.97
RANK_CHOICES = (4, 2, 1)


@dataclass(frozen=True)
class PlacementConstraints:
    """The placement that the user fixed. None, or no GPU, leaves the choice to the planner.

    The talker, the audio encoder and the image engine have a replica on each of their GPUs. Each
    replica of the image encoder has `image_encoder_ranks` GPUs.
    """

    tp_size: int | None = None
    thinker: tuple[int, ...] = ()
    talker: tuple[int, ...] = ()
    image_encoder: tuple[int, ...] = ()
    image_encoder_ranks: int = 1
    audio_encoder: tuple[int, ...] = ()
    has_encoders: bool = True
    image: tuple[int, ...] = ()
    has_images: bool = True


@dataclass(frozen=True)
class GpuShare:
    """The memory of an engine on one GPU: its weights, and all its other memory."""

    part: str
    gpu: int
    weight_bytes: int
    working_bytes: int


@dataclass(frozen=True)
class PlacementPlan:
    """Which engine runs on which GPUs.

    `kv_tokens` is the size of the thinker's KV cache; it leaves room for the other engines. `dtype`
    names the form of the thinker's weights.
    `mem_fraction_static` leaves only SGLang's own working memory free, so it does not matter
    whether the other engines have allocated their memory before SGLang measures it.
    `unplaced_image_bytes` are the weights of an image engine that the checkpoint has and the plan
    has not.
    """

    thinker: tuple[int, ...]
    talker: tuple[int, ...]
    image_encoder: tuple[int, ...]
    audio_encoder: tuple[int, ...]
    shares: tuple[GpuShare, ...]
    kv_tokens: int
    dtype: str
    mem_fraction_static: float
    image: tuple[int, ...] = ()
    unplaced_image_bytes: int = 0


def make_plan(
    sizes: CheckpointSizes, gpus: Sequence[Gpu], constraints: PlacementConstraints
) -> PlacementPlan | None:
    """Return the best placement that fits, or None."""
    for layout in iter_layouts(gpus, constraints):
        plan = fill_layout(sizes, gpus, constraints, *layout)
        if plan is not None:
            return plan
    return None


def iter_layouts(
    gpus: Sequence[Gpu], constraints: PlacementConstraints
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield (GPUs of the thinker, GPUs of the other engines), best first."""
    indices = [gpu.index for gpu in gpus]
    if constraints.thinker:
        others = tuple(index for index in indices if index not in constraints.thinker)
        yield constraints.thinker, others or constraints.thinker
        return
    ranks = (
        [constraints.tp_size]
        if constraints.tp_size
        else [r for r in RANK_CHOICES if r <= len(indices)]
    )
    for count in ranks:
        if count < len(indices):
            yield tuple(indices[:count]), tuple(indices[count:])
    for count in ranks:
        if count <= len(indices):
            yield tuple(indices[:count]), tuple(indices[:count])


def fill_layout(
    sizes: CheckpointSizes,
    gpus: Sequence[Gpu],
    constraints: PlacementConstraints,
    thinker: tuple[int, ...],
    others: tuple[int, ...],
) -> PlacementPlan | None:
    """Return a plan with the thinker on `thinker` and the other engines on `others`, or None.

    Constraints come before `others`. None means that the plan does not fit.
    """
    usable_bytes = {gpu.index: int(gpu.total_bytes * USABLE_FRACTION) for gpu in gpus}
    talker = constraints.talker or others[:1]
    # The encoders share GPUs, separate from the talker's if there are enough.
    free_gpus = others[1:] if len(others) > constraints.image_encoder_ranks else others
    images = constraints.image_encoder or free_gpus[: constraints.image_encoder_ranks]
    audio = constraints.audio_encoder or free_gpus[:1]
    if constraints.has_encoders and (not images or len(images) % constraints.image_encoder_ranks):
        return None
    shares = [
        GpuShare("thinker", gpu, sizes.thinker // len(thinker), THINKER_RESERVE) for gpu in thinker
    ]
    shares += [GpuShare("talker", gpu, sizes.talker, TALKER_RESERVE) for gpu in talker]
    if constraints.has_encoders:
        weight_bytes = sizes.image_encoder // constraints.image_encoder_ranks
        shares += [GpuShare("image encoder", gpu, weight_bytes, IMAGE_RESERVE) for gpu in images]
        shares += [
            GpuShare("audio encoder", gpu, sizes.audio_encoder, AUDIO_RESERVE) for gpu in audio
        ]
    drawing: tuple[int, ...] = ()
    if constraints.has_images and sizes.image:
        # It takes more memory than the encoders, and its steps take longer than the talker's.
        free = _compute_free_bytes(shares, usable_bytes)
        roomiest = max(others, key=lambda gpu: free.get(gpu, 0))
        drawing = constraints.image or (roomiest,)
        shares += [GpuShare("image", gpu, sizes.image, DRAWING_RESERVE) for gpu in drawing]
    if not {share.gpu for share in shares} <= usable_bytes.keys():
        return None
    free_bytes = _compute_free_bytes(shares, usable_bytes)
    bytes_per_token = sizes.kv_bytes // min(len(thinker), sizes.kv_heads)
    kv_tokens = min(free_bytes[gpu] for gpu in thinker) // bytes_per_token
    if min(free_bytes.values()) < 0 or kv_tokens < sizes.context:
        return None
    min_usable_bytes = min(usable_bytes[gpu] for gpu in thinker)
    return PlacementPlan(
        thinker=thinker,
        talker=talker,
        image_encoder=tuple(images) if constraints.has_encoders else (),
        audio_encoder=audio if constraints.has_encoders else (),
        shares=tuple(shares),
        kv_tokens=kv_tokens,
        dtype=sizes.dtype,
        mem_fraction_static=round(1 - THINKER_RESERVE / min_usable_bytes, 3),
        image=drawing,
        unplaced_image_bytes=0 if drawing else sizes.image,
    )


def _compute_free_bytes(
    shares: Sequence[GpuShare], usable_bytes: Mapping[int, int]
) -> dict[int, int]:
    """Return what the shares leave free of each GPU; negative where they do not fit."""
    return {
        index: size - sum(s.weight_bytes + s.working_bytes for s in shares if s.gpu == index)
        for index, size in usable_bytes.items()
    }


def find_nearest(
    sizes: CheckpointSizes, gpus: Sequence[Gpu], constraints: PlacementConstraints
) -> tuple[PlacementPlan | None, PlacementPlan | None]:
    """Return the nearest plans that fit; either may be None.

    The first has the same GPUs with the thinker in FP8, the second the fewest GPUs like the last
    one.
    """
    unconstrained = replace(
        constraints,
        tp_size=None,
        thinker=(),
        talker=(),
        image_encoder=(),
        audio_encoder=(),
        image=(),
    )
    quantized = None if sizes.is_quantized else make_plan(sizes.quantized(), gpus, unconstrained)
    last_gpu = gpus[-1]
    for count in range(1, 9):
        candidates = [replace(last_gpu, index=index) for index in range(count)]
        plan = make_plan(sizes, candidates, unconstrained)
        if plan is not None:
            return quantized, plan
    return quantized, None
