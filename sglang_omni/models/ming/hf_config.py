"""The checkpoint's top-level configuration in the form SGLang reads."""

from typing import Any

from transformers import PretrainedConfig

MODEL_TYPE = "bailingmm_moe_v2_lite"
ARCHITECTURE = "BailingMM2NativeForConditionalGeneration"

# Frequencies of the rotary half that follow rows (t, h, w) of a position. The released model
# hard-codes them for 32 frequencies.
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
        """Leading dimensions of a head that are rotated."""
        return int(self.head_dim * self.partial_rotary_factor)


class MingConfig(PretrainedConfig):
    """`config.json` of the checkpoint, as far as the thinker goes.

    The encoders' configurations are left out: SGLang takes a model that has them for one that
    sees and hears, and warms its server up with a picture.
    """

    model_type = MODEL_TYPE

    def __init__(
        self, llm_config: dict[str, Any] | MingTextConfig | None = None, **values: Any
    ) -> None:
        for encoder in ("vision_config", "audio_config"):
            values.pop(encoder, None)
        if not isinstance(llm_config, MingTextConfig):
            llm_config = MingTextConfig(**(llm_config or {}))
        self.llm_config = llm_config
        super().__init__(**values)

    def get_text_config(self, *args: Any, **kwargs: Any) -> MingTextConfig:
        """The thinker's own configuration; `transformers` asks for it by this name."""
        return self.llm_config
