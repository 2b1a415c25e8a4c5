"""Times of kernels and CUDA graphs."""
