"""The pages of a store: served read-only by `perftrack serve`, or written as files by `perftrack publish`."""
