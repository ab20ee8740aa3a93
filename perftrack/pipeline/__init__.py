"""Straight lines of calls through all the other layers: one module a job of the user's."""
