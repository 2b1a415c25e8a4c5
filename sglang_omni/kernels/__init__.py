"""Building blocks of Triton kernels, shared by several engines."""
