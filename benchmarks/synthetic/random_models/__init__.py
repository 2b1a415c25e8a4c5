"""Models whose weights are drawn on the GPU as they load.

SGLang imports this package where `SGLANG_EXTERNAL_MODEL_PACKAGE` names it.
"""
