"""How much memory each engine needs on a GPU besides its weights and the KV cache. Pure functions.

A reserve is the sum of a CUDA context, what the engine keeps (slots, tables, graphs), and the
activations of the largest pass that its limits allow. What a model holds for each unit comes from
its family (`models/working_memory.py`). Figures that were measured name their source; the others
are counted or are another project's, and stay on the safe side.
"""

from dataclasses import dataclass
from math import ceil

from sglang_omni.models.sizes import CheckpointSizes
from sglang_omni.models.working_memory import WorkingMemory
from sglang_omni.placement.limits import SGLANG_GRAPH_ROWS, EngineLimits

GIB, MB, GB = 1 << 30, 10**6, 10**9
CONTEXT = int(0.8 * GB)
"""A CUDA context with its modules. Measured on an H100: 0.72 to 0.74 GB of the device beyond what
PyTorch had reserved (`benchmarks/results/images_h100.json`, `used_on_device_gb`)."""
THINKER_CONTEXT = GIB
"""The same of SGLang, with its process groups. Measured on an H100: 0.9 GiB of the device that were
neither weights nor KV cache before graphs were captured (stock BailingMoeV2, 52.2 GiB of weights,
65,000 tokens, 22 GiB left of 79.1)."""
ATTENTION_WORKSPACE = 512 * MB
"""SGLang's workspace of FlashInfer is 384 MiB, the largest of its back ends; the rest is for the
tables of attention in a graph. Not measured."""
PREFILL_GRAPHS = int(0.8 * GB)
"""Graphs of prefills of up to 1,280 tokens. Measured on an H200 (`docs/measurements.md`)."""
GRAPH_ROW, GRAPH = 2 * MB, 8 * MB
"""Of a decode graph's row, and of any graph besides its tensors. Both are SGLang's own estimates
(`ServerArgs._handle_gpu_memory_settings`). Not measured here."""
DECODE_GRAPH_STEP = 8
"""Rows between two of SGLang's decode graphs."""
LOGPROB_ROWS = 512
"""Tokens of a prompt whose log probabilities are computed at once (`engines/thinker/launch.py`)."""
TABLE_ENTRY = 4
"""Bytes of SGLang's entry for a position of a request."""
ALLOCATOR_SHARE = 1.25
"""What PyTorch's allocator reserves for activations, over what is alive. The image engine reserved
1.02 to 1.16 times as much as it allocated, weights included (`images_h100*.json`). Not measured for
other engines."""
MAX_STEP_STREAMS = 128
"""Streams of the talker's largest graph."""
TALKER_GRAPHS = 40
"""Graphs of the talker: three for each of eleven numbers of streams, and seven prefills."""
TALKER_BUFFERS = 200 * MB
"""Workspaces of split sums (67 MB), the table of voices, and the encoding of a recorded voice."""
CAPTURE_COPIES = 2
"""Before a capture a pass runs once outside the graph, whose memory is separate."""
DRAWING, DRAWN_IMAGES, DRAWN_IMAGE = 6 * GIB, 4, 350 * MB
"""The image engine with up to four images of 1024 x 1024 in a step, its context included, and each
further one. Measured on an H100: 21.7 GB of the device, of which 15.9 are weights, and 0.34 GB from
the second to the fourth image (`benchmarks/results/images_h100.json`)."""


@dataclass(frozen=True)
class Reserves:
    """The bytes that each engine needs on each of its GPUs besides weights and KV cache."""

    thinker: int
    talker: int
    image_encoder: int
    audio_encoder: int
    image: int


def compute_reserves(sizes: CheckpointSizes, limits: EngineLimits) -> Reserves:
    """Return the reserves of a checkpoint's engines."""
    working = sizes.working
    return Reserves(
        thinker=compute_thinker_reserve(sizes, limits),
        talker=compute_talker_reserve(working, limits),
        image_encoder=compute_image_encoder_reserve(working, limits),
        audio_encoder=compute_audio_encoder_reserve(working, limits),
        image=compute_drawing_reserve(limits),
    )


def compute_thinker_reserve(sizes: CheckpointSizes, limits: EngineLimits) -> int:
    """Return the reserve of a rank of the thinker.

    Its passes are a prefill and a step of all requests; a step's logits, and those of a prompt with
    log probabilities, are the largest tensors. Features of a whole context of media wait beside
    them, as received and joined.
    """
    memory, rows = sizes.working.thinker, min(limits.running_requests, SGLANG_GRAPH_ROWS)
    activations = limits.prefill_tokens * memory.prompt_token
    logits = max(
        limits.running_requests * memory.batch_row,
        LOGPROB_ROWS * memory.logprob_row,
    )
    graphs = rows * GRAPH_ROW + ceil(rows / DECODE_GRAPH_STEP) * GRAPH
    graphs += PREFILL_GRAPHS if limits.has_prefill_graphs else 0
    tables = limits.running_requests * sizes.context * TABLE_ENTRY
    features = 2 * sizes.context * memory.feature_row
    kept = THINKER_CONTEXT + ATTENTION_WORKSPACE + graphs + tables + features
    return kept + int(ALLOCATOR_SHARE * activations) + logits


def compute_image_encoder_reserve(working: WorkingMemory, limits: EngineLimits) -> int:
    """Return the reserve of a rank of the image encoder.

    The largest pass is one of several pictures, or of a single larger one, which is not divided.
    """
    memory = working.image_encoder
    pixels = limits.image_pixels or memory.max_pixels
    patches = max(limits.image_patches, ceil(pixels / memory.patch_pixels))
    graph_patches = memory.graph_patches if limits.has_image_graphs else 0
    activations = ALLOCATOR_SHARE * patches + CAPTURE_COPIES * graph_patches
    return CONTEXT + int(activations * memory.patch)


def compute_audio_encoder_reserve(working: WorkingMemory, limits: EngineLimits) -> int:
    """Return the reserve of the audio encoder, whose pass takes `audio_seconds`."""
    return CONTEXT + int(ALLOCATOR_SHARE * limits.audio_seconds * working.audio_second)


def compute_talker_reserve(working: WorkingMemory, limits: EngineLimits) -> int:
    """Return the reserve of the talker.

    Each slot, and a spare one, keeps the keys and values of its whole context. Prefills and steps
    share memory, as they never run at once; the vocoder has its own.
    """
    memory, streams = working.talker, min(limits.slots, MAX_STEP_STREAMS)
    slot = limits.slot_positions * memory.position + memory.slot
    prefill = limits.slot_positions**2 * memory.prompt_pair
    step = max(prefill, streams * memory.step_stream) + streams * memory.vocoder_stream
    copies = memory.copies + (memory.fp8_copies if limits.has_fp8_talker else 0)
    kept = CONTEXT + (limits.slots + 1) * slot + copies + TALKER_BUFFERS + TALKER_GRAPHS * GRAPH
    return kept + CAPTURE_COPIES * step


def compute_drawing_reserve(limits: EngineLimits) -> int:
    """Return the reserve of the image engine."""
    return DRAWING + max(0, limits.drawn_images - DRAWN_IMAGES) * DRAWN_IMAGE
