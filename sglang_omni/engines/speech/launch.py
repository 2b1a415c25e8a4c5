"""The process environment of the talker from its device. A pure function."""

# PyTorch clears the cuBLAS workspace before a matrix product, by a kernel of its own. Without a
# workspace the products take no longer. On an H200, a step of 32 to 128 streams takes 1.4 to 3 %
# less time, and a step of fewer streams the same (`benchmarks.talker.steps`).
_NO_CUBLAS_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":0:0", "CUBLASLT_WORKSPACE_SIZE": "0"}


def build_environment(device: str, threads: int) -> dict[str, str]:
    """Return the environment variables that must be set before the engine starts.

    `threads` is the number of CPU threads; it is not used on a GPU.
    """
    if device == "cpu":
        return {"OMP_NUM_THREADS": str(threads)}
    return dict(_NO_CUBLAS_WORKSPACE)
