"""Triton kernels of the talker; a test compares each with its plain reference."""
