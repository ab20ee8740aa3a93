"""Regression tests and performance tracking for kernel fusion."""

__version__ = "0.1.0"
