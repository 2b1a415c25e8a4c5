"""The process environment from encoder settings. Pure functions."""

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.runtime.gpus import VISIBLE_DEVICES_VARIABLE, visible_devices
from sglang_omni.protocol.errors import ConfigError

DTYPES = ("float32", "bfloat16")
TP_SIZES = (1, 2, 4)


def build_environment(
    settings: EncoderSettings, threads: int, mask: str | None = None
) -> dict[str, str]:
    """Return the environment variables that must be set before the engine starts.

    Args:
        settings: The engine's settings.
        threads: CPU threads per process.
        mask: The server's own `CUDA_VISIBLE_DEVICES`; None if it is not set.

    Raises:
        ConfigError: The settings are invalid.
    """
    validate_settings(settings)
    variables = {"OMP_NUM_THREADS": str(threads)}
    if settings.device == "cuda" and settings.gpus:
        variables[VISIBLE_DEVICES_VARIABLE] = visible_devices(settings.gpus, mask)
    if settings.device == "cpu" and settings.uses_sglang:
        # SGLang looks for a GPU at import. Compiling would take seconds without a benefit. A CUDA
        # build of torch would load NCCL for the tensor-parallel group.
        variables |= {
            "SGLANG_USE_CPU_ENGINE": "1",
            "TORCHDYNAMO_DISABLE": "1",
            "SGLANG_NCCL_SO_PATH": "/nonexistent",
        }
    return variables


def validate_settings(settings: EncoderSettings) -> None:
    """Check the settings.

    Raises:
        ConfigError: The settings are invalid or contradict each other.
    """
    if not (settings.images or settings.audio):
        raise ConfigError("an encoder engine needs images, audio or both to encode")
    if settings.dtype not in DTYPES:
        raise ConfigError(f"encoder dtype {settings.dtype!r} is not one of {', '.join(DTYPES)}")
    if settings.tp_size not in TP_SIZES:
        raise ConfigError(f"an image encoder runs on 1, 2 or 4 ranks, not {settings.tp_size}")
    if settings.tp_size > 1 and not settings.images:
        raise ConfigError("the audio encoder runs on one rank")
    if settings.gpus and len(settings.gpus) != settings.tp_size:
        raise ConfigError(f"{settings.tp_size} ranks on {len(settings.gpus)} GPUs")
