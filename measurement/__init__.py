"""What `benchmarks/` and `cookbook/` both measure with. The two do not import each other."""
