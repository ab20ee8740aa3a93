"""Every renderer with every hostile name: what comes out is whole, says the name, and obeys nobody."""

import json
import re
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import jsonschema
import msgspec
import pytest
from hostile import NAMES, flooded, report_of
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from perftrack.foreign import plain, shortened, spelled
from perftrack.report import (
    as_annotations,
    as_html,
    as_json,
    as_json_lines,
    as_junit,
    as_openmetrics,
    commands,
    markdown,
    notebook,
    tables,
    text,
)
from perftrack.report.layout import Look
from perftrack.report.value import CompareRow, Comparison, History, HistoryPoint, Report

GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
SHORT = {key: name for key, name in NAMES.items() if key != "long"}

each_name = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


def both(name):
    """Reports of what was compared and of a first measurement."""
    return report_of(name), report_of(name, base=False)


def unseen(shown):
    """Letters that cannot be seen or that move others; line ends are not among them."""
    return {letter for letter in shown if not letter.isprintable()} - {"\n"}


@each_name
def test_text(name):
    for report, width in zip((*both(name), report_of(name)), (80, 120, 200), strict=True):
        check_text(report, name, width)


def check_text(report, name, width):
    shown = text.render(report, Look(width=width), all_rows=True)
    assert unseen(shown) == set()
    assert plain(name) in shown
    assert len(re.findall("^WRONG ", shown, re.MULTILINE)) == 1
    assert shown.startswith("RED  ")
    in_ascii = text.render(report, Look(width=width, unicode=False))
    assert in_ascii.isascii()
    coloured = text.render(report, Look(width=width, color=True))
    # only colours and their end; a title or a cleared screen would be others
    assert set(re.findall(r"\x1b.?[^m]*m", coloured)) <= {f"\x1b[{code}m" for code in (0, 1, 2, 31, 32, 33, 36)}


@each_name
def test_json(name):
    report = report_of(name)
    written = as_json.render(report)
    assert msgspec.json.decode(written, type=Report) == report
    jsonschema.Draft202012Validator(as_json.schema()).validate(json.loads(written))


@each_name
def test_json_lines(name):
    report = report_of(name)
    lines = [json.loads(line) for line in as_json_lines.render(report).split("\n")]
    assert [line["kind"] for line in lines] == ["report", *["row"] * len(report.rows), "accuracy", "device"]
    assert {line["suite"] for line in lines if line["kind"] == "row"} == {name}
    assert {line["run"] for line in lines} == {report.run}


def inlines(source):
    return [child for token in GITHUB.parse(source) for child in token.children or ()]


@each_name
def test_markdown(name):
    for report in both(name):
        check_markdown(report)


def check_markdown(report):
    source = markdown.render(report)
    tokens = GITHUB.parse(source)
    html = {child.content for child in inlines(source) if child.type == "html_inline"}
    assert html <= {"<code>", "</code>", "<br>", "<sub>", "</sub>", "<!-- -->"}
    assert {token.type for token in tokens if token.type.startswith(("html", "fence"))} == set()
    kinds = {child.type for child in inlines(source) if child.content != "perftrack report"}
    assert kinds & {"link_open", "image", "em_open", "s_open", "code_inline"} == set()
    pipes = [len(re.findall(r"(?<!\\)\|", line)) for line in source.splitlines() if line.startswith("|")]
    assert set(pipes) == ({8} if report.base else {8, 13})
    assert unseen(source) == set()
    # a note's line that begins with a slash is a command to GitLab, one with :: a command to GitHub's runner
    assert re.search(r"^\s*(/|::)", source, re.MULTILINE) is None


@each_name
def test_markdown_says_the_name_in_its_cell(name):
    source = markdown.render(report_of(name))
    tokens = GITHUB.parse(source)
    texts = [
        "".join(child.content for child in tokens[index + 1].children if child.type != "html_inline")
        for index, token in enumerate(tokens)
        if token.type == "td_open"
    ]
    said = [shortened(plain(f"{name}: {name}"), letters) for letters in (600, 200)]
    assert any(one in cell for cell in texts for one in said)
    outside_code = re.sub("<code>.*?</code>", "", GITHUB.render(source), flags=re.DOTALL)
    # what follows makes a host link, mention or notify
    assert re.search(r"[@#!~$]\w|www\.\w|://", outside_code) is None


@each_name
def test_markdown_is_never_longer_than_its_limit(name):
    report = flooded(name)
    for limit in (30_000, markdown.GITHUB_COMMENT_BYTES):
        check_limit(report, limit)


def check_limit(report, limit):
    source = markdown.render(report, limit=limit)
    assert len(source.encode()) <= limit
    shown = source.count("**wrong**")
    assert 0 <= shown <= 10
    assert re.search(rf"^Not shown: .*\b{200 - shown} wrong", source, re.MULTILINE)
    first = markdown.render(msgspec.structs.replace(report, base=None), limit=limit)
    assert len(first.encode()) <= limit


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.said = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.said.append(data)


TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "h3", "strong", "dl", "div", "dt", "dd"),
    *("code", "bdi", "main", "section", "ol", "li", "span", "p", "b", "pre", "details", "summary", "footer"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "id", "tabindex", "role", "scope", "open"),
    *("aria-label", "aria-labelledby"),
}


@each_name
def test_html(name):
    for report in both(name):
        source = as_html.render(report)
        page = Page()
        page.feed(source)
        assert page.tags <= TAGS
        assert page.attributes <= ATTRIBUTES
        assert plain(name) in "".join(page.said)
        assert unseen(source) == set()
        assert source.startswith("<!DOCTYPE html>")


def test_html_asks_for_nothing():
    source = as_html.render(report_of("name"))
    assert re.search(r"https?:|src=|href=|url\(|@import|<script", source) is None
    assert "default-src 'none'" in source
    assert "prefers-color-scheme: dark" in source


@each_name
def test_html_for_a_notebook(name):
    report = report_of(name)
    frame = Page()
    frame.feed(report._repr_html_())
    assert (frame.tags, frame.attributes) == ({"iframe"}, {"srcdoc", "sandbox", "title", "style"})
    row = CompareRow(suite=name, case=name, device_class=name, variant=name, verdict=name)
    points = tuple(HistoryPoint(revision=name, subject=name, time_s=1e-4, segment=str(n)) for n in range(2))
    for value in (
        Comparison(left=name, right=name, rows=(row,), total=1, note=name),
        History(suite=name, case=name, device_class=name, variant=name, points=points),
    ):
        page = Page()
        page.feed(value._repr_html_())
        assert page.tags <= {*TAGS, "h4", "svg", "path", "polyline", "circle"}
        assert plain(name) in "".join(page.said)
        shown = notebook.rich_text(value, 120, unicode=True).plain
        assert unseen(shown) == set()
        assert plain(name) in shown


@each_name
def test_junit(name):
    for report in both(name):
        root = ET.fromstring(as_junit.render(report).encode())  # noqa: S314 - we wrote it
        tests = root.findall("testsuite/testcase")
        assert {one.get("classname") for one in tests} == {"perftrack", spelled(f"{name}.{name}")}
        assert spelled(f"{name} fused") in {one.get("name") for one in tests}
        assert int(root.get("tests")) == len(tests)


def decoded(data):
    for escape, letter in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        data = data.replace(escape, letter)
    return data


def annotations(shown):
    """(level, title, message) as the runner reads them; every line must be one."""
    found = [re.fullmatch(r"::(error|warning|notice) title=([^:,\r\n]*)::(.*)", line) for line in shown.split("\n")]
    assert all(found), shown
    return [(one[1], decoded(one[2]), decoded(one[3])) for one in found]


@each_name
def test_annotations(name):
    for report in both(name):
        shown = annotations(as_annotations.render(report))
        assert shown[0][0] == "notice"
        assert shown[0][2].startswith("RED: ")
        assert any(level == "error" and plain(name)[:50] in title for level, title, _ in shown)
        assert all(unseen(title + message) == set() for _, title, message in shown)


@each_name
def test_annotations_stay_within_the_limits_of_a_step(name):
    source = as_annotations.render(flooded(name))
    shown = annotations(source)
    levels = [level for level, _, _ in shown]
    assert max(levels.count(level) for level in ("error", "warning", "notice")) <= 10
    assert "191 more of this level are not shown" in source
    assert max(len(line.encode()) for line in source.split("\n")) <= 4096
    assert len(source.encode()) <= 65_536


@each_name
def test_openmetrics(name):
    for report in both(name):
        families = {family.name: family for family in text_string_to_metric_families(as_openmetrics.render(report))}
        times = families["perftrack_time_seconds"].samples
        assert {sample.labels["suite"] for sample in times} == {spelled(name)}
        assert families["perftrack_exit_code"].samples[0].value == 1


@pytest.mark.parametrize("name", [name for name in SHORT.values() if "\x00" not in name])
def test_commands_can_be_copied_into_a_shell(name):
    command = commands.measure_again(name, f"{name}[n=1]", name, head="7e3f9a1", base=None)
    assert command.isprintable()
    done = subprocess.run(
        ["bash", "-c", f'perftrack() {{ printf "%s\\0" "$@"; }}; {command}'], capture_output=True, check=True
    )
    words = done.stdout.decode().split("\0")[:-1]
    assert sorted(words) == sorted(
        ["submit", name, "-k", f"{name}[n=1]", "--head", "7e3f9a1", "--base", "none", "-d", name]
        + (["--"] if name.startswith("-") else [])
    )


@each_name
def test_histories_and_comparisons_as_text(name):
    row = CompareRow(suite=name, case=name, device_class=name, variant=name, verdict=name)
    point = HistoryPoint(revision=name, subject=name, time_s=1e-4, segment="a")
    for look in (Look(width=80), Look(width=120, unicode=False), Look(width=200, color=True)):
        for shown in (
            tables.comparison(Comparison(left=name, right=name, rows=(row,), total=1, note=name), look),
            tables.history(History(suite=name, case=name, device_class=name, variant=name, points=(point,)), look),
        ):
            assert unseen(shown) <= ({"\x1b"} if look.color else set())
            assert look.unicode or shown.isascii()
