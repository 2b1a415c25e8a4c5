"""Experts with weights of four bits: format, checkpoints, kernels and the SGLang method."""
