"""Where SGLang finds tuned configurations of its fused MoE kernel for our experts.

SGLang looks in one folder, its own unless `SGLANG_MOE_CONFIG_DIR` names another. Ours is named only
where it holds a file for exactly this card and these experts: elsewhere SGLang's may know better.
"""

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VARIABLE = "SGLANG_MOE_CONFIG_DIR"
FOLDER = Path(__file__).parent / "moe_kernels"


def version_folder(root: Path = FOLDER) -> Path:
    """The folder of this Triton's files, as SGLang names it."""
    version = importlib.metadata.version("triton")
    return root / "configs" / f"triton_{version.replace('.', '_')}"


def file_name(card: str, experts: int, width: int, fp8: bool) -> str:
    """The file of experts of `width` columns on one rank, as SGLang names it."""
    kind = ",dtype=fp8_w8a8,block_shape=[128, 128]" if fp8 else ""
    return f"E={experts},N={width},device_name={card.replace(' ', '_')}{kind}.json"


def tuned_environment(
    config: Mapping[str, Any], card: str, tp_size: int, root: Path = FOLDER
) -> dict[str, str]:
    """What to set for a checkpoint's `config.json` on cards of this name; nothing if untuned."""
    text = config["llm_config"]
    experts = text["num_experts"] + text["num_shared_experts"]
    width = text["moe_intermediate_size"] // tp_size
    name = file_name(card, experts, width, "quantization_config" in config)
    return {VARIABLE: str(root)} if (version_folder(root) / name).exists() else {}
