"""What every model needs in SGLang's processes, by the entry-point group `sglang.srt.plugins`.

SGLang calls `register` in the engine and in every scheduler process. Nothing is patched.
"""

import logging

from sglang_omni.engines.runtime.log_records import is_engine_process, log_to_server
from sglang_omni.engines.thinker.start_reports import send_reports_to_engine


def register() -> None:
    """Register the grammar backend, and send the log of an engine's process to the server."""
    from sglang_omni.engines.thinker.grammar_backend import register_backend

    register_backend()
    # SGLang's level is for its own many lines; ours say what a checkpoint's load left out.
    logging.getLogger("sglang_omni").setLevel(logging.INFO)
    if is_engine_process():
        log_to_server()
        send_reports_to_engine()
    # SGLang imports the processors of all its models, and warns of each that misses a package.
    logging.getLogger("sglang.srt.managers.multimodal_processor").setLevel(logging.ERROR)
