"""The talker engine: step times, parity, profiles, and tuning of its kernels."""
