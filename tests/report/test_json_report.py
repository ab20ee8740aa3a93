import json

import jsonschema
import msgspec
import pytest
from report_builders import ADD, NORM, SOFTMAX, case, device, finding, run, slower, summaries

from perftrack.model import Verdict
from perftrack.report import as_json
from perftrack.report.build import build
from perftrack.report.value import SCHEMA, Report

CASES = [case(ADD), case(SOFTMAX), case(NORM)]
REPORTS = {
    "red": build(run(), CASES, [device()], summaries(ADD), [slower(), finding(NORM, Verdict.MISSING)]),
    "first": build(run(base=False), CASES, [device()], summaries(ADD, SOFTMAX, NORM), []),
    "empty": build(run(), [], [], [], []),
}


@pytest.mark.parametrize("name", REPORTS)
def test_the_report_survives_the_round_trip_and_fits_its_schema(name):
    written = as_json.render(REPORTS[name])
    assert msgspec.json.decode(written, type=Report) == REPORTS[name]
    jsonschema.Draft202012Validator(as_json.schema()).validate(json.loads(written))


def test_the_schema_refuses_what_is_no_report():
    broken = json.loads(as_json.render(REPORTS["red"])) | {"verdict": "PURPLE"}
    with pytest.raises(jsonschema.ValidationError, match="PURPLE"):
        jsonschema.Draft202012Validator(as_json.schema()).validate(broken)


def test_the_document_says_what_it_is():
    document = json.loads(as_json.render(REPORTS["red"]))
    assert document["schema"] == SCHEMA == "perftrack.report/1"
    assert (document["verdict"], document["exit_code"], document["rows"][0]["verdict"]) == ("RED", 1, "slower")
    assert document["counts"]["same"] == 0
