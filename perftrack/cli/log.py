"""Text for standard output and error where a CI host reads along."""

import os
import re


def harmless(text: str) -> str:
    """A runner of GitHub obeys lines that begin with `::` or hold `##[`, whoever wrote them; ours are to be read."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return text
    return re.sub(r"^(\s*):(?=:)", r"\1: ", text, flags=re.MULTILINE).replace("##[", "## [")
