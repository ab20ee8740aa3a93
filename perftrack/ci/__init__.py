"""Where a report goes on the CI host that runs the command: its summary, its annotations, one comment."""
