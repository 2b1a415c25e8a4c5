"""Which of SGLang's ways to split a model over ranks the thinker supports.

Attention and dense layers are split by `tp_size`; the routed experts by `ep_size` into groups of
whole experts, and within a group by `tp_size / ep_size`. The server checks its own configuration
before it starts the engine; this check is for the stock SGLang server.
"""

import logging

from sglang.srt.runtime_context import get_parallel, get_server_args

from sglang_omni.protocol.errors import StartupError

logger = logging.getLogger(__name__)

# SGLang's arguments and their neutral values.
_UNSUPPORTED: dict[str, object] = {
    "pp_size": 1,
    "enable_dp_attention": False,
    "moe_a2a_backend": "none",
    "moe_dense_tp_size": None,
    "moe_dp_size": 1,
    "attn_cp_size": 1,
    "dcp_size": 1,
    "enable_eplb": False,
    "ep_num_redundant_experts": 0,
    "init_expert_location": "trivial",
}


def check_ranks() -> None:
    """Check SGLang's arguments before the model is built, and log what they switch off.

    Raises:
        StartupError: An argument splits the model in a way that it does not support.
    """
    arguments = get_server_args()
    for name, neutral in _UNSUPPORTED.items():
        if getattr(arguments, name) not in (neutral, None):
            option = "--" + name.replace("_", "-")
            raise StartupError(f"this model does not support {option}; use --tp-size, --ep-size")
    parallel = get_parallel()
    if parallel.moe_ep_size > 1 and parallel.tp_rank == 0:
        logger.info(
            "thinker: experts are split over %d groups of ranks; decode steps use SGLang's expert "
            "kernels instead of this project's",
            parallel.moe_ep_size,
        )
