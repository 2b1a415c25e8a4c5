"""How the thinker is split over ranks, and which of SGLang's ways it does not support.

Pure functions, so that the server checks its configuration before it starts an engine.
"""

from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.protocol.errors import ConfigError

# SGLang's arguments that the plug-in would ignore or follow in part, their neutral values, and why.
_MODEL_IS_SPLIT_OTHERWISE = "the plug-in's layers are split by tp_size and ep_size only"
_ROUTES_DO_NOT_FOLLOW = (
    "a rank would compute experts for other ranks' tokens without knowing which of them are media"
)
_ROUTERS_NAME_LOGICAL_EXPERTS = (
    "the plug-in's routers choose experts by their number in the checkpoint, not by a copy's"
)
_UNSUPPORTED: dict[str, tuple[object, str]] = {
    "enable_dp_attention": (False, _ROUTES_DO_NOT_FOLLOW),
    "dp_size": (1, "the server counts the requests of one scheduler; run several servers"),
    "enable_dp_lm_head": (False, _MODEL_IS_SPLIT_OTHERWISE),
    "moe_a2a_backend": ("none", _ROUTES_DO_NOT_FOLLOW),
    "moe_dense_tp_size": (None, _MODEL_IS_SPLIT_OTHERWISE),
    "moe_dp_size": (1, _MODEL_IS_SPLIT_OTHERWISE),
    "attn_cp_size": (1, _MODEL_IS_SPLIT_OTHERWISE),
    "dcp_size": (1, _MODEL_IS_SPLIT_OTHERWISE),
    "pp_size": (1, "the model has no pipeline stages"),
    "enable_eplb": (False, _ROUTERS_NAME_LOGICAL_EXPERTS),
    "ep_num_redundant_experts": (0, _ROUTERS_NAME_LOGICAL_EXPERTS),
    "init_expert_location": ("trivial", _ROUTERS_NAME_LOGICAL_EXPERTS),
    "elastic_ep_backend": (None, _ROUTERS_NAME_LOGICAL_EXPERTS),
    "enable_deepep_waterfill": (False, _ROUTERS_NAME_LOGICAL_EXPERTS),
}
# SGLang's kernels that skip the experts of other ranks as the plug-in expects.
_EP_RUNNERS = ("auto", "triton")


def get_ep_size(settings: ThinkerSettings) -> int:
    """Return the number of groups of ranks that share the routed experts."""
    return int(dict(settings.server_args).get("ep_size") or settings.ep_size)


def check_parallelism(settings: ThinkerSettings) -> None:
    """Check that the thinker can be split as the settings say.

    Raises:
        ConfigError: It cannot; the message names the option.
    """
    arguments = dict(settings.server_args)
    for name, (neutral, reason) in _UNSUPPORTED.items():
        value = arguments.get(name)
        if value is not None and value != neutral:
            raise ConfigError(f"thinker.server_args: {name} is not supported: {reason}")
    ep_size = get_ep_size(settings)
    tp_size = int(arguments.get("tp_size") or settings.tp_size)
    if ep_size < 1 or tp_size % ep_size:
        raise ConfigError(
            f"thinker.ep_size ({ep_size}) must divide the number of ranks, thinker.tp_size "
            f"({tp_size})"
        )
    runner = arguments.get("moe_runner_backend") or "auto"
    if ep_size > 1 and runner not in _EP_RUNNERS:
        raise ConfigError(
            f"thinker.server_args: moe_runner_backend {runner} is not supported with "
            f"thinker.ep_size above 1; use {' or '.join(_EP_RUNNERS)}"
        )
