"""The tracked operations: one a file, each with its step-by-step and its fused implementations.

Nothing here knows perftrack: these are plain functions over NumPy and CuPy arrays. CuPy and Numba are
imported where a function needs them, so that the modules load on a machine that has neither.
"""
