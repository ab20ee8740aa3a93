"""Measuring: the protocol on a backend, tracked code loaded from a tree, and the processes that do both."""
