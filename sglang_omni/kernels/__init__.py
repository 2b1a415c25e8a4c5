"""What kernels of several engines are made of."""
