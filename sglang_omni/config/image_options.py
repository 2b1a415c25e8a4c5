"""Options of the image engine: where it runs, and what a request may ask of it."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from sglang_omni.config.engine_options import PhaseDeadline, StartDeadline, StepDeadline
from sglang_omni.config.option_types import (
    OPTION_CONFIG,
    Bytes,
    Count,
    Device,
    DType,
    Gpus,
    Integer,
    Number,
    Texts,
)


@dataclass(frozen=True, config=OPTION_CONFIG)
class ImageOptions:
    """Options of the engine that draws images."""

    enabled: Literal["auto", "always", "never"] = "auto"
    """Whether to draw images; auto: if the checkpoint can, on GPUs only if image.gpus names one."""

    device: Device = "auto"
    """Device of the engine; auto: that of the other engines."""

    gpus: Gpus = ()
    """GPUs to run on, a replica for each entry; unset: the placement's choice, or the first."""

    place: Texts = ()
    """Machines of the replicas, NODE or NODE:GPU each (NODE local: this one); unset: this one."""

    min_replicas: Annotated[Integer, Field(ge=0)] | None = None
    """Replicas that always run; 0: requests start the first; unset: 0 on a CPU, all on GPUs."""

    dtype: DType = "auto"
    """Type of the weights; auto: that of the other engines."""

    backend: Literal["auto", "reference", "fast"] = "auto"
    """How steps are computed; reference: by diffusers' classes; auto: fast on a GPU."""

    fp8: bool = False
    """Whether to multiply in FP8, which changes images a little; FP8 checkpoints always do."""

    max_batch_size: Count = 4
    """Maximum number of images in a step."""

    rest: Annotated[Number, Field(ge=0, le=10)] = 1.0
    """How long images rest after a step while answers on the same device wait, in parts of it."""

    max_images: Count = 16
    """Maximum number of images in progress in a replica; others wait."""

    steps: Count = 30
    """Number of steps of images of medium quality."""

    max_steps: Count = 100
    """Maximum number of steps that a request may ask for."""

    cfg: Annotated[Number, Field(ge=0, le=20)] = 2.0
    """Guidance of requests that give none; up to 1 there is none."""

    max_n: Annotated[Integer, Field(ge=1, le=10)] = 4
    """Maximum number of images in a request."""

    max_resolution: Annotated[Integer, Field(ge=256, le=1024)] = 1024
    """Maximum side of a square image, in pixels."""

    max_references: Annotated[Integer, Field(ge=1, le=16)] = 16
    """Maximum number of images that an edit may start from."""

    url_seconds: Annotated[Number, Field(ge=1)] = 3600.0
    """How long the URL of an image is valid, in seconds."""

    url_bytes: Bytes = 256 << 20
    """Memory for images that are fetched by URL; the oldest make room for new ones."""

    start_deadline_s: StartDeadline = 600.0
    phase_deadline_s: PhaseDeadline = 400.0
    step_deadline_s: StepDeadline = 30.0
