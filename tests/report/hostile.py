"""Names that break what is careless with them, and a report that is full of one."""

import msgspec
from report_builders import ADD, case, device, finding, revision, run, slower, summary

from perftrack.model import Accuracy, Cause, Verdict
from perftrack.report.build import build

NAMES = {
    "pipe": "a|b||c",
    "backticks": "a`b``c`",
    "line ends": "a\nb\r\nc\u2028d",
    "markup": "**a** _b_ [c](http://evil.example) ![d](x) ~~e~~ # f\\",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>&amp;&#64;",
    "attribute": "\"' onload='alert(1)",
    "comment end": "--> ]]> */ ?>",
    "template": "{{ 7 * 7 }} {% raw %} ${{ github.token }}",
    "mention": "@everyone #1 !2 ~label GH-3 www.evil.example",
    "workflow command": "::error::x%0A::add-mask::y ##[error]z",
    "quick action": "/close\n/merge",
    "rich": "[bold red]a[/bold red] [link=http://evil.example]b[/link]",
    "terminal": "\x1b[2J\x1b]0;title\x07a\x08b",
    "nul": "a\x00b",
    "right to left": "a\u202eb\u2066c\u200fd",
    "invisible": "a\u200bb\ufeffc\xadd",
    "not ascii": "日本語 µ×… é e\u0301 😀 \U0001f468\u200d\U0001f469",
    "shell": "'; rm -rf / #$(id)`id`",
    "option": "--db=sqlite:///x",
    "percent": "100%25 50%",
    "long": "n" * 20_000,
    "empty": "",
}
"""By what is hostile in them."""


def report_of(name: str, *, base: bool = True, count: int = 1):
    """A red report in which every text that comes from elsewhere is `name`."""
    return build(
        run(
            base=base,
            head=revision(subject=name),
            note=name,
            problems=(name,),
        ),
        [case(ADD, suite=name)],
        [device(f"GPU-{name}", name, node=name), device("GPU-2", name)],
        [
            summary(name, "fused", suite=name, device_class=name),
            summary(ADD, "fused", suite=name, device_class=name),
        ],
        [
            finding(
                f"{name}{number or ''}",
                Verdict.WRONG,
                newly=True,
                suite=name,
                device_class=name,
                message=name,
                variant="fused",
            )
            for number in range(count)
        ]
        + (
            [
                slower(ADD, suite=name, device_class=name, why=name, message=name, variant="fused"),
                finding(f"{name}/", suite=name, device_class=name, cause=Cause.UNFUSED_FASTER, message=name),
                finding(
                    f"{name}=",
                    Verdict.FASTER,
                    ratio=0.8,
                    suite=name,
                    device_class=name,
                    accuracy=Accuracy.LESS,
                    error_head=4e-7,
                    error_base=1e-7,
                ),
            ]
            if base
            else []
        ),
    )


def flooded(name: str, rows: int = 200):
    """The same with many rows, all of them red, and long lists of everything."""
    report = report_of(name)
    wrong = next(row for row in report.rows if row.verdict is Verdict.WRONG)
    many = tuple(
        msgspec.structs.replace(wrong, case=f"{name}[n={number}]", message=f"{name} is wrong") for number in range(rows)
    )
    return msgspec.structs.replace(
        report,
        rows=many,
        counts={**report.counts, Verdict.WRONG: rows},
        reasons=(name,) * 200,
        problems=(name,) * 200,
        skipped=(name,) * 200,
        devices=report.devices * 50,
    )
