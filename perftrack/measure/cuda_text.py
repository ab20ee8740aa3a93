"""CUDA C++ as the compiler reads it: comments and layout do not tell two texts apart."""

import re

_PIECE = re.compile(
    r"""
    (?P<skipped> //(?:\\\n|[^\n])* | /\*.*?\*/ | \\\n | [ \t\r\f\v]+ )
    | (?P<line> \n )
    | (?P<token>
        R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
        | \.?\d(?:'?[\w.]|(?<=[eEpP])[+-])* | \w+
        | <<=|>>=|\.\.\.|->\*?|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\#\#|::|[-+*/%&|^]= | .
      )
    """,
    re.VERBOSE | re.DOTALL,
)
"""What a comment, white space or a joined line is; a line's end; and a token, the longest first."""


def tokens(text: str) -> str:
    """The tokens of a text, one blank between two; a preprocessor directive is a line, with blanks where it has any.

    Two texts of equal tokens compile to equal code but for `__LINE__`, and so for what `assert` prints.
    """
    whole = text.replace("\r\n", "\n")
    parts = [""]
    directive = False
    for match in _PIECE.finditer(whole):
        word = match["token"]
        begins = word == "#" and not whole[whole.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        if (begins and not directive) or (directive and match["line"] is not None):
            directive = begins
            if parts[-1] == " ":
                parts.pop()
            parts.append("\n")
        if word is not None:
            parts.append(word if directive else f"{word} ")
        elif directive and parts[-1] != " " and match["line"] is None:
            parts.append(" ")
    return "".join(parts)
