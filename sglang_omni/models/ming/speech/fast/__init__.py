"""The talker's step on a CUDA device: packed weights, fused kernels, one graph per batch size.

Every part has a plain reference: `models/ming/{talker,dit,cfm,qwen2,vae}.py` for one stream,
`talker/{slots,step,stream}.py` for slots.
"""
