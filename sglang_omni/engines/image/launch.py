"""The process environment of the image engine from its device. A pure function."""


def build_environment(device: str, threads: int) -> dict[str, str]:
    """Return the environment variables that must be set before the engine starts.

    `threads` is the number of CPU threads; it is not used on a GPU.
    """
    if device == "cpu":
        return {"OMP_NUM_THREADS": str(threads)}
    return {
        # Images of different sizes would leave gaps between fixed segments: about 1 GB.
        "PYTORCH_ALLOC_CONF": "expandable_segments:True",
        # Below normal: under NVIDIA's Multi-Process Service, what others compute comes first.
        "CUDA_MPS_CLIENT_PRIORITY": "1",
    }
