"""Readers and writers of neighbours' formats. They know values, never the store: a pipeline brings both together."""
