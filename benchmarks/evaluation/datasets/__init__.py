"""Data sets of the benchmarks: from the hub, from a folder, or bundled."""
