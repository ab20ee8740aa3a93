"""Benchmarks of the operations in `kernels`: declarations only."""
