"""Engine of the thinker, an adapter of `sglang.Engine`."""
