"""Triton kernels of the talker engine, each held to the plain reference by a test."""
