"""Decode steps of the talker on CUDA: packed weights, fused kernels, one graph per batch size.

Every part has a plain reference: `{talker,dit,cfm,qwen2,vae}.py` of
`sglang_omni/models/ming/speech` for one stream, `{slots,step,vae_slots}.py` for slots.
"""
