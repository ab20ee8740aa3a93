"""Authors, a token and literal reports for the tests of the CI hosts."""

from perftrack.model import Verdict
from perftrack.report.value import DeviceLine, Report, Row

TOKEN = "ghs_c0ffee0000000000000000000000000000000000"  # noqa: S105 - of the host of these tests
BOT = {"login": "github-actions[bot]", "type": "Bot", "id": 7}
ADA = {"login": "ada", "type": "User", "id": 1}


def make_report(verdict="RED", **more):
    """A report with one row, or none where all is well."""
    row = Row(
        suite="elementwise", case="add[n=1]", device_class="NVIDIA-H200-141G", variant="fused", baseline="unfused",
        verdict=Verdict.SLOWER, red=True, confirmed=True, head_s=49.1e-6, base_s=41.2e-6,
        next="perftrack submit elementwise -k 'add[n=1]' --head 7e3f9a1c0ffe --base b81c0d4deadb -d NVIDIA-H200-141G",
    )  # fmt: skip
    values = {
        "verdict": verdict,
        "exit_code": {"RED": 1, "GREEN": 0, "INCOMPLETE": 4}[verdict],
        "reasons": ("nothing was measured",) if verdict == "INCOMPLETE" else (),
        "run": "0419" * 8,
        "repo": "kernels",
        "head": "7e3f9a1",
        "head_sha": "7e3f9a1c0ffe".ljust(40, "0"),
        "head_subject": "fuse bias",
        "base": "b81c0d4",
        "base_sha": "b81c0d4deadb".ljust(40, "0"),
        "base_note": "merge-base with main, 3 commits back",
        "counts": {Verdict.SLOWER: 1} if verdict == "RED" else {Verdict.SAME: 1},
        "devices": (
            DeviceLine(
                device_class="NVIDIA-H200-141G", backend="cuda", cards=("GPU-1",), nodes=("n",), measured=2, expected=2
            ),
        ),
        "rows": (row,) if verdict == "RED" else (),
    }
    return Report(**{**values, **more})
