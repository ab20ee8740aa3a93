"""Text that comes from elsewhere (names, commit messages, errors) as it may be shown: one line, nothing unseen."""


def plain(text: str) -> str:
    """Foreign text on one line: white space collapsed, control characters spelled out."""
    return spelled(" ".join(text.split()))


def spelled(text: str) -> str:
    r"""What cannot be seen or moves other letters (control characters, line ends, bidi marks) as `\x00`, `\u202e`."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def shortened(text: str, letters: int) -> str:
    """At most so many letters: where there are more, the middle is left out and counted."""
    if len(text) <= letters:
        return text
    left_out = len(text) - letters + len(f" … {len(text)} letters … ")
    said = f" … {left_out} letters … "
    head = (letters - len(said) + 1) // 2
    return text[:head] + said + text[head + left_out :]
