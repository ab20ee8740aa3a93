"""Samples in, verdicts out: no I/O, no clock, no randomness."""
