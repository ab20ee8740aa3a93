"""What a pipeline says while it works; the command line decides how it looks."""

from typing import Protocol


class Talk(Protocol):
    """A listener: everything goes to the user, nothing comes back."""

    def say(self, text: str) -> None:
        """A line for the user: a decision, a warning."""
        ...

    def stage(self, title: str, total: int) -> None:
        """A stage with `total` jobs begins."""
        ...

    def working(self, text: str) -> None:
        """What is going on now."""
        ...

    def advance(self) -> None:
        """One job of the stage is done."""
        ...

    def end(self) -> None:
        """The stage is over."""
        ...
