"""Putting into words what tracked code raised."""

import traceback
from pathlib import Path


def describe(error: BaseException) -> str:
    """`Type: first line of the message (file:line in function)`, the place being where it was raised."""
    text = str(error).strip().partition("\n")[0]
    name = type(error).__name__
    said = f"{name}: {text}" if text else name
    place = _place(error)
    return f"{said} ({place})" if place else said


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_short(error.filename)}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    return f"{_short(last.filename)}:{last.lineno} in {last.name}"


def _short(filename: str) -> str:
    return "/".join(Path(filename).parts[-2:])
