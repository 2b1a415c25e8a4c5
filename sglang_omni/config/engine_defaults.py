"""Defaults of engine options that depend on the device."""

CPU_SLOTS, GPU_SLOTS = 8, 128
"""Default slots of a talker; on a GPU the batch size of its largest CUDA graph."""
CPU_PATCHES, GPU_PATCHES = 4_096, 32_768
CPU_AUDIO_SECONDS, GPU_AUDIO_SECONDS = 120.0, 600.0
"""Default sizes of an encoder's forward pass; on a CPU one to two seconds of one core."""
