"""Registration of Ming with stock SGLang through the entry-point group `sglang.srt.plugins`.

SGLang calls `register` in the engine and in every scheduler process. Nothing is patched but what
SGLang's own registry of hooks changes: whether a prefill is replayed from a graph.
"""

import json
from pathlib import Path

from sglang_omni.models.ming.prompt.chat import DEFAULT_SYSTEM, ROLE_END, SPEAKERS

TEMPLATE = "ming"
CAN_RUN_PREFILL_GRAPH = (
    "sglang.srt.model_executor.runner.prefill_cuda_graph_runner.PrefillCudaGraphRunner"
    ".can_run_graph"
)


def register() -> None:
    """Register the configuration, model, processor, quantization, template and hook."""
    from sglang.srt.configs.model_config import multimodal_model_archs
    from sglang.srt.layers.linear import WEIGHT_LOADER_V2_SUPPORTED
    from sglang.srt.layers.quantization import CPU_QUANTIZATION_METHODS, QUANTIZATION_METHODS
    from sglang.srt.managers.multimodal_processor import PROCESSOR_MAPPING
    from sglang.srt.models.registry import ModelRegistry
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    from transformers import AutoConfig

    from sglang_omni.models.ming.thinker.hf_config import ARCHITECTURE, MODEL_TYPE, MingConfig
    from sglang_omni.models.ming.thinker.int4.layout import METHOD
    from sglang_omni.models.ming.thinker.int4.method import (
        DequantizedFp8LinearMethod,
        Int4Config,
    )
    from sglang_omni.models.ming.thinker.model import BailingMM2NativeForConditionalGeneration
    from sglang_omni.models.ming.thinker.processor import MingProcessor
    from sglang_omni.models.ming.thinker.query_states import refuse_prefill_graph

    AutoConfig.register(MODEL_TYPE, MingConfig, exist_ok=True)
    ModelRegistry.models[ARCHITECTURE] = BailingMM2NativeForConditionalGeneration
    PROCESSOR_MAPPING[BailingMM2NativeForConditionalGeneration] = MingProcessor
    if ARCHITECTURE not in multimodal_model_archs:
        multimodal_model_archs.append(ARCHITECTURE)
    for methods in (QUANTIZATION_METHODS, CPU_QUANTIZATION_METHODS):
        methods[METHOD] = Int4Config
    # SGLang selects the loader of a layer by the name of its method's class.
    if DequantizedFp8LinearMethod.__name__ not in WEIGHT_LOADER_V2_SUPPORTED:
        WEIGHT_LOADER_V2_SUPPORTED.append(DequantizedFp8LinearMethod.__name__)
    HookRegistry.register(CAN_RUN_PREFILL_GRAPH, refuse_prefill_graph, HookType.AROUND)
    register_template()


def register_template() -> None:
    """Register the chat format as a conversation template of the stock server.

    The tokenizer of the checkpoint may have no chat template.
    """
    from sglang.srt.parser.conversation import (
        Conversation,
        SeparatorStyle,
        register_conv_template,
        register_conv_template_matching_function,
    )

    template = Conversation(
        name=TEMPLATE,
        system_template="<role>SYSTEM</role>{system_message}\n\ndetailed thinking off<|role_end|>",
        system_message=DEFAULT_SYSTEM,
        roles=(f"<role>{SPEAKERS['user']}</role>", f"<role>{SPEAKERS['assistant']}</role>"),
        sep_style=SeparatorStyle.NO_COLON_SINGLE,
        sep=ROLE_END.token,
        stop_str=ROLE_END.token,
        # One placeholder per media input; SGLang adds the line break after an image.
        image_token="<image><imagePatch></image>",
        video_token="<video><framePatch></video>",
        audio_token="<audio><audioPatch></audio>",
    )
    register_conv_template(template, override=True)
    register_conv_template_matching_function(match_template)


def match_template(model_path: str) -> str | None:
    """Return the name of the template if `model_path` is a Ming checkpoint, else None."""
    from sglang_omni.models.ming.thinker.hf_config import MODEL_TYPE

    path = Path(model_path) / "config.json"
    try:
        is_ming = json.loads(path.read_text(encoding="utf-8")).get("model_type") == MODEL_TYPE
    except (OSError, ValueError):
        return None
    return TEMPLATE if is_ming else None
