"""From the talker's device to the environment of its process. A pure function."""

# Products that PyTorch gives cuBLAS scratch memory for clear it first, each in a kernel of its own;
# without it they take no longer. On an H200 a step of 32 to 128 streams takes 1.4 to 3 % less, of
# fewer the same (`benchmarks.talker.steps`).
_WITHOUT_SCRATCH = {"CUBLAS_WORKSPACE_CONFIG": ":0:0", "CUBLASLT_WORKSPACE_SIZE": "0"}


def environment(device: str, threads: int) -> dict[str, str]:
    """Variables that must be set before the engine starts; `threads` are a CPU's."""
    if device == "cpu":
        return {"OMP_NUM_THREADS": str(threads)}
    return dict(_WITHOUT_SCRATCH)
