"""Options of the engines: thinker, talker and encoders."""

from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import (
    OPTION_CONFIG,
    Arguments,
    Bytes,
    Count,
    Flag,
    Fraction,
    Gpus,
    Index,
    Integer,
    KVCacheDType,
    Number,
    Seconds,
    Text,
    Texts,
)

StartDeadline = Annotated[Seconds, Field(description="Time limit for the start, in seconds.")]
PhaseDeadline = Annotated[
    Seconds, Field(description="Time limit for each phase of the start, in seconds.")
]
MinReplicas = Annotated[
    Count | None,
    Field(
        description="Number of replicas that always run, the first ones; autoscaling starts the "
        "others while requests wait; unset: all run."
    ),
]
StepDeadline = Annotated[
    Number,
    Field(ge=1, description="Time limit for a step, in seconds; then the engine is restarted."),
]


@dataclass(frozen=True, config=OPTION_CONFIG)
class ThinkerOptions:
    """Options of the thinker, an SGLang engine."""

    tp_size: Count | None = None
    """Tensor-parallel size; unset: the placement's choice, or as many as GPUs, or 1 a machine."""

    ep_size: Count = 1
    """Expert-parallel size: groups of ranks that share the routed experts; divides tp_size."""

    gpus: Gpus = ()
    """GPUs of the ranks of a machine; unset: the placement's choice, or the first ones."""

    nodes: Count = 1
    """Number of machines that the ranks are on; sgl-omni node runs those of the others."""

    dist_init_addr: Text | None = None
    """HOST:PORT of the first machine, where the ranks meet; machine N connects to PORT + N; unset:
    one machine."""

    context_length: Count | None = None
    """Maximum tokens of a prompt and its answer together; unset: the model's."""

    max_total_tokens: Count | None = None
    """Size of the KV cache in tokens; unset: the placement's or SGLang's choice."""

    max_running_requests: Count | None = None
    """Maximum number of requests in a batch; unset: SGLang's choice."""

    mem_fraction_static: Fraction | None = None
    """Share of GPU memory for weights and KV cache; unset: the placement's or SGLang's choice."""

    kv_cache_dtype: KVCacheDType = "auto"
    """Type of the KV cache; fp8_e4m3: twice as many tokens, answers differ a little, GPUs only."""

    radix_cache: Flag = True
    """Reuse the KV cache of prompts that begin alike."""

    warm_up_prompts: Flag = True
    """Compile the kernels for prompts of every length at the start, on a GPU."""

    deterministic: Flag = False
    """Make a seeded answer independent of other requests in the batch; needs a GPU."""

    start_deadline_s: StartDeadline = 900.0
    phase_deadline_s: PhaseDeadline = 600.0
    step_deadline_s: StepDeadline = 12.0

    server_args: Arguments = field(default_factory=dict)
    """Further SGLang server arguments by name."""


@dataclass(frozen=True, config=OPTION_CONFIG)
class TalkerOptions:
    """Options of the talker, the speech engine."""

    gpus: Gpus = ()
    """GPUs to run on, a replica for each entry; unset: the placement's choice, or the first."""

    place: Texts = ()
    """Machines of the replicas, NODE or NODE:GPU each (NODE local: this one); unset: this one."""

    replicas: Count = 1
    """Number of replicas on a CPU."""

    min_replicas: MinReplicas = None

    slots: Count | None = None
    """Maximum requests that generate speech at once in a replica; unset: 128, on a CPU 8."""

    min_patches: Index = 3
    """Minimum number of patches of a segment; the model may end it after them."""

    max_patches: Count = 1000
    """Maximum number of patches of a segment."""

    context: Count = 2048
    """KV cache length of a slot, in tokens."""

    graphs: Flag = True
    """Capture steps in CUDA graphs; step times are known then."""

    fp8: Flag = False
    """Let the flow model multiply in FP8 in large batches; needs graphs and bfloat16."""

    # `real_time` needs the step times, so without graphs it has no effect.
    admission: Literal["real_time", "queue"] = "real_time"
    """A request that would make other speech stall is rejected (real_time) or waits (queue)."""

    start_deadline_s: StartDeadline = 300.0
    phase_deadline_s: PhaseDeadline = 200.0
    step_deadline_s: StepDeadline = 12.0


@dataclass(frozen=True, config=OPTION_CONFIG)
class ImageEncoderOptions:
    """Options of the engine for images and video frames."""

    tp_size: Annotated[Integer, Field(ge=1, le=4)] = 1
    """Tensor-parallel size: 1, 2 or 4."""

    gpus: Gpus = ()
    """GPUs of the ranks, tp_size for each replica; unset: the placement's choice, or the first."""

    place: Texts = ()
    """Machines of the replicas, NODE or NODE:GPU each (NODE local: this one); unset: this one."""

    min_replicas: MinReplicas = None

    max_patches: Count | None = None
    """Maximum 16 x 16 patches in a forward pass; unset: 32,768 on a GPU, 4,096 on a CPU."""

    graphs: Flag = True
    """Capture the forward pass in CUDA graphs."""

    cache_bytes: Bytes = 1 << 30
    """Size of the feature cache for repeated images."""

    start_deadline_s: StartDeadline = 300.0
    phase_deadline_s: PhaseDeadline = 200.0
    step_deadline_s: StepDeadline = 12.0


@dataclass(frozen=True, config=OPTION_CONFIG)
class AudioEncoderOptions:
    """Options of the engine for audio."""

    gpus: Gpus = ()
    """GPUs to run on, a replica for each entry; unset: the placement's choice, or the first."""

    place: Texts = ()
    """Machines of the replicas, NODE or NODE:GPU each (NODE local: this one); unset: this one."""

    min_replicas: MinReplicas = None

    max_seconds: Annotated[Number, Field(ge=1)] | None = None
    """Maximum seconds of audio in a forward pass; unset: 600 on a GPU, 120 on a CPU."""

    cache_bytes: Bytes = 256 << 20
    """Size of the feature cache for repeated clips."""

    start_deadline_s: StartDeadline = 300.0
    phase_deadline_s: PhaseDeadline = 200.0
    step_deadline_s: StepDeadline = 12.0
