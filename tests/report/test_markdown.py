import msgspec
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_builders import ADD, CLASS, NORM, SOFTMAX, case, device, finding, run, slower, summaries

from perftrack.foreign import plain
from perftrack.model import Verdict
from perftrack.report import markdown
from perftrack.report.build import build

GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
CASES = [case(ADD), case(SOFTMAX), case(NORM)]
MEASURED = summaries(ADD, SOFTMAX, NORM)


def cells(source):
    """The text of every table cell, as a browser would show it."""
    tokens = GITHUB.parse(source)
    return [
        "".join(child.content for child in tokens[index + 1].children if child.content != "<!-- -->")
        for index, token in enumerate(tokens)
        if token.type in ("td_open", "th_open")
    ]


@given(st.text(max_size=60))
def test_foreign_text_stays_one_cell_and_keeps_its_letters(message):
    source = f"| a | b |\n| :-- | :-- |\n| {markdown.escape(message)} | end |"
    tokens = GITHUB.parse(source)
    kinds = {child.type for token in tokens for child in token.children or () if child.content != "<!-- -->"}
    assert cells(source) == ["a", "b", plain(message), "end"]
    assert kinds <= {"text", "text_special"}


def test_the_special_letters_by_hand():
    assert markdown.escape("a|b<c>\n*d* `e` @f #1") == (r"a\|b&lt;c&gt; \*d\* \`e\` \@<!-- -->f \#<!-- -->1")


def test_a_red_report():
    red = slower(why="registers 32 -> 64")
    source = markdown.render(build(run(), CASES, [device()], MEASURED, [red, finding(SOFTMAX), finding(NORM)]))
    lines = source.splitlines()
    assert lines[0] == r"### RED: 1 confirmed slowdown on NVIDIA\-H200\-141G"
    shown = cells(source)
    assert shown[:7] == ["verdict", "case", "device", "what was seen", "time µs", "baseline µs", "speedup"]
    assert shown[7:10] == ["slower", f"<code>elementwise: {ADD}</code> <code>fused</code>", CLASS]
    assert shown[11:] == [
        "41.2 -> 49.1",
        "95.2 -> 95.3",
        "2.31x -> 1.94x (head: vectorisation 3.75x, fusion 2.01x)",
    ]
    assert "Not shown: 2 same." in source
    code = [token.content for token in GITHUB.parse(source) if token.type == "code_block"]
    assert code == [
        f"perftrack submit elementwise -k '{ADD}' --head 7e3f9a1c0ffe --base b81c0d4deadb -d NVIDIA-H200-141G\n"
    ]


def test_hostile_messages_do_not_add_cells():
    nasty = finding(ADD, Verdict.WRONG, newly=True, message="a | b\n| c | <script>alert(1)</script> `|`")
    source = markdown.render(build(run(), CASES, [device()], MEASURED, [nasty]))
    assert len(cells(source)) == 14
    assert "<script>" not in source


def test_without_a_base_a_table_of_speedups():
    source = markdown.render(build(run(base=False), CASES, [device()], MEASURED, []))
    shown = cells(source)
    assert len(shown) == 12 * 4 + 7 * 2
    assert shown[15:23] == ["961.0", "127.4", "7.54x", "3.75x", "2.01x", "4213", "98 %", "100 %"]
    assert shown[-5:] == ["3 of 3", "3.75x", "2.01x", "100 %", "0"]


def test_what_does_not_fit_a_comment_is_said():
    report = build(run(base=False), CASES, [device()], MEASURED, [])
    many = tuple(msgspec.structs.replace(report.rows[0], case=f"case[n={n}]") for n in range(2000))
    source = markdown.render(msgspec.structs.replace(report, rows=many))
    assert len(source.encode()) <= markdown.GITHUB_COMMENT_BYTES
    assert "more rows did not fit." in source
