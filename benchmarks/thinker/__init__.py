"""The thinker: decoding speed, profiles, and tuning of its kernels."""
