"""The report as JUnit XML: a suite of tests for each suite and device class, a test for each candidate variant.

`failure`: a confirmed slowdown, newly wrong. `error`: newly crashing, and an incomplete run (a test of its own, so that
missing is never green). `skipped`: no verdict, or no news. All else passes.
"""

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from perftrack.foreign import spelled
from perftrack.model import Verdict
from perftrack.report import words
from perftrack.report.value import Report, Row

_NO_VERDICT = (Verdict.AMBIGUOUS, Verdict.MISSING, Verdict.UNSTABLE, Verdict.REMOVED)
_Key = tuple[str, str, str, str]
_BROKEN = (Verdict.SLOWER, Verdict.FAILED, Verdict.WRONG)


def render(report: Report) -> str:
    """The document, XML 1.0: what that cannot hold (NUL, control characters) is spelled out."""
    root = ET.Element("testsuites", name=_text(f"perftrack {words.against(report)}"))
    root.append(_whole(report))
    accuracy = {(one.suite, one.case, one.device_class, one.variant): words.accuracy(one) for one in report.accuracy}
    for suite, device_class in dict.fromkeys((row.suite, row.device_class) for row in report.rows):
        rows = [row for row in report.rows if (row.suite, row.device_class) == (suite, device_class)]
        root.append(_suite(f"{suite} on {device_class}", [_test(row, accuracy) for row in rows]))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(one.get(name, "0")) for one in root)))
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True).decode()


def _whole(report: Report) -> ET.Element:
    test = ET.Element("testcase", classname="perftrack", name="complete")
    if report.reasons:
        _outcome(test, "error", "; ".join(report.reasons), "incomplete")
    suite = _suite("perftrack", [test])
    about = {
        "verdict": f"{report.verdict}: {words.headline(report)}",
        "run": report.run,
        "head": f"{report.head_sha} {report.head_subject}",
        "base": f"{report.base_sha or 'none'}: {report.base_note}",
        **{f"coverage of {one.device_class}": words.device(one) for one in report.devices},
    }
    properties = ET.Element("properties")
    suite.insert(0, properties)
    for name, value in about.items():
        ET.SubElement(properties, "property", name=_text(name), value=_text(value))
    return suite


def _suite(name: str, tests: Sequence[ET.Element]) -> ET.Element:
    suite = ET.Element("testsuite", name=_text(name), tests=str(len(tests)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(test.find(tag) is not None for test in tests)))
    suite.extend(tests)
    return suite


def _test(row: Row, accuracy: Mapping[_Key, str]) -> ET.Element:
    test = ET.Element(
        "testcase", classname=_text(f"{row.suite}.{row.device_class}"), name=_text(f"{row.case} {row.variant}")
    )
    if row.head_s is not None:
        test.set("time", f"{row.head_s:.9f}")
    said = words.evidence(row) or row.verdict.value
    if row.red:
        _outcome(test, "error" if row.verdict is Verdict.FAILED else "failure", said, row.verdict.value, _details(row))
    elif row.verdict in _NO_VERDICT:
        _outcome(test, "skipped", f"{row.verdict.value}: {said}")
    elif row.verdict in _BROKEN:
        known = ", ".join(one.text for one in row.regressions)
        why = known or ("not confirmed by fresh rounds" if row.verdict is Verdict.SLOWER else "no news")
        _outcome(test, "skipped", f"{row.verdict.value}, {why}: {said}")
    if changed := accuracy.get((row.suite, row.case, row.device_class, row.variant)):
        ET.SubElement(test, "system-out").text = _text(changed)
    return test


def _details(row: Row) -> str:
    cause = f"{row.cause.value}: " if row.cause.value else ""
    known = [one.text for one in row.regressions]
    lines = [cause + words.numbers(row), row.why, row.message, *known, f"measure again: {row.next}" if row.next else ""]
    return "\n".join(_text(line) for line in lines if line)


def _outcome(test: ET.Element, tag: str, message: str, kind: str = "", details: str = "") -> None:
    outcome = ET.SubElement(test, tag, message=_text(message))
    if kind:
        outcome.set("type", kind)
    outcome.text = details or None


def _text(text: str) -> str:
    return spelled(text)
