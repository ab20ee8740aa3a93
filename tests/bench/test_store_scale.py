"""`make bench-store` over few rows, on both engines: what it prints and how it ends, not how fast anything is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import store_scale

LINE = re.compile(r"(held  |MISSED)  (\w+) +(.+?)  +(\S+) (\S*) +(<=|>=) (\S+)(?:  \(.*\))?")
SAYS_NO_TIME = {
    "8 producers, batches of 100: rows lost",
    "8 producers, batches of 100: errors",
    "plans that scan a whole table of facts",
}
OF_BOTH = {
    *SAYS_NO_TIME,
    "ready rows, 1000 a commit, of the bare driver",
    "submit with checks and look-ups, of the bare driver",
    "first submit, of the same once more",
    "bytes a result with its keys, without samples",
    "history of a suite, 204 rows",
    "newest of 4080 series against a commit",
    "8160 rows to a frame, of the bare fetchall, with ADBC",
    "8160 rows to a frame, of the bare fetchall, without",
    "its memory, without ADBC",
    "one more commit of 4080 rows",
}
OF_ONE = {
    "sqlite": {
        "8 producers through one writer, of one bare writer",
        "the same, of a statement by hand and the bare driver",
    },
    "postgresql": {"ready rows, of the server's binary COPY", "its memory, with ADBC"},
}


@pytest.fixture(scope="module")
def done():
    command = [sys.executable, str(Path(__file__).with_name("store_scale.py")), "--rows", "8000"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_every_figure_is_printed_beside_its_bound_and_what_is_no_time_holds(done):
    lines = [found.groups() for found in map(LINE.fullmatch, done.stdout.splitlines()) if found]
    for engine, own in OF_ONE.items():
        said = {
            what: (word, float(figure), float(bound)) for word, of, what, figure, _, _, bound in lines if of == engine
        }
        assert set(said) == OF_BOTH | own, done.stdout + done.stderr
        assert {what: said[what] for what in SAYS_NO_TIME} == dict.fromkeys(SAYS_NO_TIME, ("held  ", 0, 0))
    assert len(lines) == 2 * len(OF_BOTH) + sum(map(len, OF_ONE.values()))
    for word, *_, figure, _, sign, bound in lines:
        holds = float(figure) <= float(bound) if sign == "<=" else float(figure) >= float(bound)
        assert word == ("held  " if holds else "MISSED") or figure == bound  # which is rounded
    missed = [f"missed: {engine}: {what}" for word, engine, what, *_ in lines if word == "MISSED"]
    assert re.findall("^missed: .*$", done.stdout, re.MULTILINE) == missed
    assert f"{len(lines) - len(missed)} of {len(lines)} bounds hold" in done.stdout
    assert done.returncode == bool(missed)


@pytest.mark.parametrize(
    ("least", "figure", "code"), [(False, 2, 0), (False, 2.1, 1), (True, 2, 0), (True, 1.9, 1)], ids=str
)
def test_a_missed_bound_makes_it_exit_1(monkeypatch, capsys, least, figure, code):
    def bench(table, on, rows):
        assert rows == 7
        table.most(on.engine, "another", 0, 0)
        (table.least if least else table.most)(on.engine, "the one", figure, 2)

    monkeypatch.setattr(store_scale, "bench", bench)
    monkeypatch.setattr(sys, "argv", ["store_scale.py", "--rows", "7", "--engine", "sqlite"])
    assert store_scale.main() == code
    assert ("missed: sqlite: the one" in capsys.readouterr().out) == bool(code)
