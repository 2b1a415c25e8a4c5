"""The top-level configuration of the checkpoint, in the form that SGLang reads."""

from typing import Any

from transformers import PretrainedConfig

from sglang_omni.models.ming.thinker.int4.published_configs import rewrite_quantization

MODEL_TYPE = "bailingmm_moe_v2_lite"
ARCHITECTURE = "BailingMM2NativeForConditionalGeneration"

ENCODERS = ("vision_config", "audio_config")

# Numbers of rotary frequencies for the axes (t, h, w). The released model hard-codes them for 32
# frequencies.
MROPE_SECTION = (8, 12, 12)


class MingTextConfig(PretrainedConfig):
    """`llm_config` of `config.json`.

    Two keys are rewritten. `rope_scaling` of the released file (`{"factor": null, ...}`) breaks
    SGLang's context-length code, and SGLang computes 3-D positions only if `mrope_section` is in
    the rope dictionary. `routed_scaling_factor` is stored under another name.
    """

    model_type = "bailing_moe_v2"

    def __init__(self, **values: Any) -> None:
        theta = values.pop("rope_theta", 2_400_000)
        values.pop("rope_scaling", None)
        values.pop("rope_parameters", None)
        hidden, heads = values.get("hidden_size", 4096), values.get("num_attention_heads", 32)
        values.setdefault("hidden_size", hidden)
        values.setdefault("num_attention_heads", heads)
        values["head_dim"] = values.get("head_dim") or hidden // heads
        values["routed_scaling_factor"] = values.get(
            "routed_scaling_factor", values.get("moe_router_topk_scaling_factor", 2.5)
        )
        super().__init__(**values)
        self.rope_theta = theta
        self.rope_parameters = {
            "rope_type": "default",
            "rope_theta": theta,
            "mrope_section": list(MROPE_SECTION),
        }

    @property
    def rotary_dim(self) -> int:
        """Return the number of leading dimensions of a head that are rotated."""
        return int(self.head_dim * self.partial_rotary_factor)


class MingEncoderConfig(PretrainedConfig):
    """`vision_config` or `audio_config` of `config.json`, unchanged.

    SGLang reads attributes of both; our code reads them with `config.parse_encoder_config`.
    """

    model_type = "ming_encoder"


class MingConfig(PretrainedConfig):
    """`config.json` of the checkpoint.

    `ming_encoders` says where the encoders run. With `own` the model has them, so that stock SGLang
    accepts images and audio. With `external`, which our server sets through SGLang's override of
    model arguments, features arrive ready. The encoder configurations are then removed: SGLang
    takes a model that has them for one with a vision transformer, and reserves memory for it.
    """

    model_type = MODEL_TYPE

    def __init__(
        self, llm_config: dict[str, Any] | MingTextConfig | None = None, **values: Any
    ) -> None:
        if not isinstance(llm_config, MingTextConfig):
            llm_config = MingTextConfig(**(llm_config or {}))
        self.llm_config = llm_config
        values.setdefault("ming_encoders", "own")
        if "quantization_config" in values:
            # SGLang would choose methods of its own for published layouts.
            dtype = values.get("torch_dtype", values.get("dtype"))
            values["quantization_config"] = rewrite_quantization(
                values["quantization_config"],
                None if dtype is None else str(dtype).removeprefix("torch."),
            )
        for encoder in ENCODERS:
            if isinstance(values.get(encoder), dict):
                values[encoder] = MingEncoderConfig(**values[encoder])
        super().__init__(**values)

    @property
    def has_encoders(self) -> bool:
        """Whether the model has its own encoders."""
        return self.ming_encoders == "own"

    def update(self, config_dict: dict[str, Any]) -> None:
        """Apply overrides, as SGLang does with `json_model_override_args`."""
        super().update(config_dict)
        if not self.has_encoders:
            for encoder in ENCODERS:
                vars(self).pop(encoder, None)

    def get_text_config(self, *args: Any, **kwargs: Any) -> MingTextConfig:
        """Return the configuration of the thinker; `transformers` calls this method."""
        return self.llm_config
