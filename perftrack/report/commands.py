"""The command that measures a row again, as it can be copied into a shell: always one line."""

import shlex

import msgspec

from perftrack.report.value import AccuracyRow, Report, Row


def measure_again(suite: str, case: str, device_class: str, *, head: str | None, base: str | None) -> str:
    """`perftrack submit …` for one case; `head` None is the work tree as it is, `base` None no base."""
    options = ["-k", case, *(["--head", head] if head else []), "--base", base or "none", "-d", device_class]
    # a name must not be taken for an option
    words = [*options, "--", suite] if suite.startswith("-") else [suite, *options]
    return " ".join(map(_quoted, ("perftrack", "submit", *words)))


def with_own_commands(report: Report) -> Report:
    """A report of unknown origin whose commands are made anew of its names: what people copy is never foreign."""
    return msgspec.structs.replace(
        report,
        rows=tuple(msgspec.structs.replace(row, next=_again(report, row)) for row in report.rows),
        accuracy=tuple(msgspec.structs.replace(row, next=_again(report, row)) for row in report.accuracy),
    )


def _again(report: Report, row: Row | AccuracyRow) -> str:
    head = None if report.head.endswith("+dirty") else report.head_sha[:12]
    base = report.base_sha[:12] if report.base_sha else None
    return measure_again(row.suite, row.case, row.device_class, head=head, base=base) if row.next else ""


def _quoted(word: str) -> str:
    """For POSIX shells; what cannot be printed goes into $'…' (POSIX.1-2024), so that the command stays one line."""
    if word.isprintable():
        return shlex.quote(word)
    inside = "".join(
        f"\\{letter}" if letter in "\\'" else letter if letter.isprintable() else _octal(letter) for letter in word
    )
    return f"$'{inside}'"


def _octal(letter: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in letter.encode(errors="surrogatepass"))
