"""The forms of the KV cache, and what SGLang needs for them. Pure functions."""

from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.protocol.errors import ConfigError

FP8 = "fp8_e4m3"
# SGLang's attention back ends whose kernels read an FP8 cache of a model without scales. Others
# would fail at the first prompt: `torch_native` and `flex_attention` multiply only equal dtypes,
# `fa4` takes no FP8 queries.
_FP8_BACKENDS = ("fa3", "flashinfer", "triton")
_BACKEND_ARGUMENTS = (
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
)
MIN_FP8_CAPABILITY = (8, 9)
"""The least compute capability of GPUs whose Triton kernels convert to and from e4m3."""


def check_kv_cache(settings: ThinkerSettings) -> None:
    """Check that SGLang can store and read the KV cache as the settings say.

    Raises:
        ConfigError: It cannot; the message names the option.
    """
    arguments = dict(settings.server_args)
    if "kv_cache_dtype" in arguments:
        raise ConfigError(
            "thinker.server_args: set thinker.kv_cache_dtype instead of kv_cache_dtype, so that "
            "the placement knows the size of a token"
        )
    if arguments.get("quantization_param_path") is not None:
        raise ConfigError(
            "thinker.server_args: quantization_param_path is not supported: the plug-in stores "
            "keys and values without scales"
        )
    if settings.kv_cache_dtype != FP8:
        return
    if settings.device == "cpu":
        raise ConfigError("thinker.kv_cache_dtype fp8_e4m3 needs a GPU")
    for name in _BACKEND_ARGUMENTS:
        backend = arguments.get(name)
        if backend is not None and backend not in _FP8_BACKENDS:
            raise ConfigError(
                f"thinker.server_args: {name} {backend} cannot read a KV cache in fp8_e4m3; use "
                f"{', '.join(_FP8_BACKENDS[:-1])} or {_FP8_BACKENDS[-1]}, or leave "
                "thinker.kv_cache_dtype at auto"
            )
