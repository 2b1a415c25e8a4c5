"""Tuned configurations of SGLang's fused MoE kernel for our experts.

SGLang looks in one folder: its own, unless `SGLANG_MOE_CONFIG_DIR` names another. Ours is used only
if it has a file for exactly this GPU and these experts, because SGLang's may be better otherwise.
"""

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONFIG_DIR_VARIABLE = "SGLANG_MOE_CONFIG_DIR"
CONFIG_ROOT = Path(__file__).parent / "moe_kernels"


def find_version_folder(root: Path = CONFIG_ROOT) -> Path:
    """Return the folder for the installed Triton version, as SGLang names it."""
    version = importlib.metadata.version("triton")
    return root / "configs" / f"triton_{version.replace('.', '_')}"


def format_file_name(gpu_name: str, num_experts: int, width: int, fp8: bool) -> str:
    """Return SGLang's file name for experts of `width` columns on one rank."""
    dtype = ",dtype=fp8_w8a8,block_shape=[128, 128]" if fp8 else ""
    return f"E={num_experts},N={width},device_name={gpu_name.replace(' ', '_')}{dtype}.json"


def build_moe_environment(
    config: Mapping[str, Any],
    gpu_name: str,
    tp_size: int,
    root: Path = CONFIG_ROOT,
    *,
    ep_size: int = 1,
) -> dict[str, str]:
    """Return the environment variables for a checkpoint on GPUs of this name.

    Empty if there is no tuned configuration, or if SGLang's kernel does not run the experts.
    `config` is the checkpoint's `config.json`.
    """
    method = config.get("quantization_config", {}).get("quant_method")
    if method not in (None, "fp8"):
        return {}
    text = config["llm_config"]
    # With expert parallelism the shared expert is no part of the stack.
    num_shared = text["num_shared_experts"] if ep_size == 1 else 0
    num_experts = text["num_experts"] // ep_size + num_shared
    width = text["moe_intermediate_size"] * ep_size // tp_size
    name = format_file_name(gpu_name, num_experts, width, fp8=method == "fp8")
    return {CONFIG_DIR_VARIABLE: str(root)} if (find_version_folder(root) / name).exists() else {}
