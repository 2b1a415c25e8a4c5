"""Plan the placement of engines on GPUs. Pure functions.

The thinker takes the largest number of ranks that leaves at least one GPU free. The other
engines use the free GPUs, so that speech and images do not slow down text. If no GPU is free, all
engines share. Constraints of the user are kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.models.sizes import CheckpointSizes
from sglang_omni.placement.limits import EngineLimits
from sglang_omni.placement.reserves import compute_reserves, compute_thinker_reserve

# The fraction of a GPU's memory that remains after the driver and fragmentation.
USABLE_FRACTION = 0.97
RANK_CHOICES = (4, 2, 1)
# Of a machine that is suggested.
MAX_GPUS = 8


@dataclass(frozen=True)
class PlacementConstraints:
    """The placement that the user fixed. None, or no GPU, leaves the choice to the planner.

    The talker, the audio encoder and the image engine have a replica on each of their GPUs. Each
    replica of the image encoder has `image_encoder_ranks` GPUs. `limits` decide how much memory
    engines need besides their weights.
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
    limits: EngineLimits = field(default_factory=EngineLimits)

    @property
    def fixed(self) -> dict[str, tuple[int, ...]]:
        """Return the GPUs that the user named, by the part that runs there."""
        named = {
            "talker": self.talker,
            "image encoder": self.image_encoder,
            "audio encoder": self.audio_encoder,
            "image": self.image,
        }
        return {part: gpus for part, gpus in named.items() if gpus}


@dataclass(frozen=True)
class Demand:
    """What a replica of an engine takes of each of its `ranks` GPUs."""

    part: str
    weight_bytes: int
    working_bytes: int
    ranks: int = 1

    @property
    def total_bytes(self) -> int:
        """Return all that it takes."""
        return self.weight_bytes + self.working_bytes


@dataclass(frozen=True)
class GpuShare:
    """The memory of an engine on one GPU: its weights, and all its other memory."""

    part: str
    gpu: int
    weight_bytes: int
    working_bytes: int

    @property
    def total_bytes(self) -> int:
        """Return all of it."""
        return self.weight_bytes + self.working_bytes


@dataclass(frozen=True)
class PlacementPlan:
    """Which engine runs on which GPUs.

    `kv_tokens` is the size of the thinker's KV cache; it leaves room for the other engines. `dtype`
    names the form of the thinker's weights.
    `mem_fraction_static` leaves only SGLang's own working memory free, so it does not matter
    whether the other engines have allocated their memory before SGLang measures it.
    `unplaced_image_bytes` are the weights of an image engine that the checkpoint has and the plan
    has not. `kv_dtype` is the type of the KV cache's elements. `smaller_limits` are options that
    have smaller values than usual, with these.
    """

    thinker: tuple[int, ...]
    talker: tuple[int, ...]
    image_encoder: tuple[int, ...]
    audio_encoder: tuple[int, ...]
    shares: tuple[GpuShare, ...]
    kv_tokens: int
    kv_dtype: str
    dtype: str
    mem_fraction_static: float
    image: tuple[int, ...] = ()
    unplaced_image_bytes: int = 0
    smaller_limits: tuple[tuple[str, int], ...] = ()


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


def list_demands(sizes: CheckpointSizes, constraints: PlacementConstraints) -> tuple[Demand, ...]:
    """Return what every engine but the thinker takes."""
    reserves = compute_reserves(sizes, constraints.limits)
    demands = [Demand("talker", sizes.talker, reserves.talker)]
    if constraints.has_encoders:
        ranks = constraints.image_encoder_ranks
        weight_bytes = sizes.image_encoder // ranks
        demands.append(Demand("image encoder", weight_bytes, reserves.image_encoder, ranks))
        demands.append(Demand("audio encoder", sizes.audio_encoder, reserves.audio_encoder))
    if constraints.has_images and sizes.image:
        demands.append(Demand("image", sizes.image, reserves.image))
    return tuple(demands)


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
    fixed, ranks = constraints.fixed, constraints.image_encoder_ranks
    # The encoders share GPUs, separate from the talker's if there are enough.
    free_gpus = others[1:] if len(others) > ranks else others
    default = {
        "talker": others[:1],
        "image encoder": free_gpus[:ranks],
        "audio encoder": free_gpus[:1],
    }
    demands = list_demands(sizes, constraints)
    assignment: dict[str, tuple[int, ...]] = {}
    for demand in demands:
        if demand.part == "image" and "image" not in fixed:
            # It takes more memory than the encoders, and its steps take longer than the talker's.
            shares = build_shares(sizes, constraints, thinker, demands, assignment)
            free = compute_free_bytes(shares, gpus)
            assignment["image"] = (max(others, key=lambda gpu: free.get(gpu, 0)),)
        else:
            assignment[demand.part] = fixed.get(demand.part) or default[demand.part]
    return build_plan(sizes, gpus, constraints, thinker, assignment)


def build_plan(
    sizes: CheckpointSizes,
    gpus: Sequence[Gpu],
    constraints: PlacementConstraints,
    thinker: tuple[int, ...],
    assignment: Mapping[str, tuple[int, ...]],
) -> PlacementPlan | None:
    """Return the plan with every engine where `assignment` says, or None if it does not fit."""
    demands = list_demands(sizes, constraints)
    if any(len(assignment[one.part]) % one.ranks or not assignment[one.part] for one in demands):
        return None
    shares = build_shares(sizes, constraints, thinker, demands, assignment)
    if not {share.gpu for share in shares} <= {gpu.index for gpu in gpus}:
        return None
    free_bytes = compute_free_bytes(shares, gpus)
    kv_tokens = min(free_bytes[gpu] for gpu in thinker) // compute_token_bytes(sizes, len(thinker))
    if min(free_bytes.values()) < 0 or kv_tokens < sizes.context:
        return None
    min_usable_bytes = min(get_usable_bytes(gpu) for gpu in gpus if gpu.index in thinker)
    reserve_bytes = compute_thinker_reserve(sizes, constraints.limits)
    drawing = assignment.get("image", ())
    return PlacementPlan(
        thinker=thinker,
        talker=assignment["talker"],
        image_encoder=assignment.get("image encoder", ()),
        audio_encoder=assignment.get("audio encoder", ()),
        shares=shares,
        kv_tokens=kv_tokens,
        kv_dtype=sizes.kv_dtype,
        dtype=sizes.dtype,
        mem_fraction_static=round(1 - reserve_bytes / min_usable_bytes, 3),
        image=drawing,
        unplaced_image_bytes=0 if drawing else sizes.image,
    )


def build_shares(
    sizes: CheckpointSizes,
    constraints: PlacementConstraints,
    thinker: Sequence[int],
    demands: Sequence[Demand],
    assignment: Mapping[str, Sequence[int]],
) -> tuple[GpuShare, ...]:
    """Return what the thinker, and the engines with an assignment, take of their GPUs."""
    reserve = compute_thinker_reserve(sizes, constraints.limits)
    shares = [GpuShare("thinker", gpu, sizes.thinker // len(thinker), reserve) for gpu in thinker]
    shares += [
        GpuShare(one.part, gpu, one.weight_bytes, one.working_bytes)
        for one in demands
        for gpu in assignment.get(one.part, ())
    ]
    return tuple(shares)


def get_usable_bytes(gpu: Gpu) -> int:
    """Return what engines may take of a GPU."""
    return int(gpu.total_bytes * USABLE_FRACTION)


def compute_token_bytes(sizes: CheckpointSizes, ranks: int) -> int:
    """Return the bytes of a token in the KV cache of each rank."""
    return sizes.kv_bytes // min(ranks, sizes.kv_heads)


def compute_free_bytes(shares: Sequence[GpuShare], gpus: Sequence[Gpu]) -> dict[int, int]:
    """Return what the shares leave free of each GPU; negative where they do not fit."""
    return {
        gpu.index: get_usable_bytes(gpu)
        - sum(share.total_bytes for share in shares if share.gpu == gpu.index)
        for gpu in gpus
    }


@dataclass(frozen=True)
class NearestPlans:
    """Plans that fit where that of a checkpoint does not.

    `quantized` have the same GPUs with the thinker in fewer bits, `larger` the fewest GPUs like the
    last one.
    """

    quantized: tuple[PlacementPlan, ...] = ()
    larger: PlacementPlan | None = None


def find_nearest(
    sizes: CheckpointSizes, gpus: Sequence[Gpu], constraints: PlacementConstraints
) -> NearestPlans:
    """Return the nearest plans that fit."""
    unconstrained = replace(
        constraints,
        tp_size=None,
        thinker=(),
        talker=(),
        image_encoder=(),
        audio_encoder=(),
        image=(),
    )
    forms = [form for form in (sizes.quantized(), sizes.in_four_bits()) if form is not sizes]
    quantized = (make_plan(form, gpus, unconstrained) for form in forms)
    last_gpu = gpus[-1]
    larger = (
        make_plan(sizes, [replace(last_gpu, index=index) for index in range(count)], unconstrained)
        for count in range(1, MAX_GPUS + 1)
    )
    return NearestPlans(
        tuple(plan for plan in quantized if plan is not None),
        next((plan for plan in larger if plan is not None), None),
    )
