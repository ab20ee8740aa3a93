"""Whatever stands where something else belongs: it is read, reported or left out, and never a crash."""

import copy
import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interop_builders import (
    action_data,
    action_entry,
    asv_file,
    google_file,
    google_record,
    nvbench_file,
    nvbench_state,
    pytest_file,
    pytest_record,
)

from perftrack.errors import UsageError
from perftrack.interop.assemble import assemble
from perftrack.interop.document import Hints
from perftrack.interop.formats import sessions
from perftrack.interop.grouping import groups
from perftrack.interop.value import Notes
from perftrack.model import Status
from perftrack.store.pack import refuse_unstorable

ASV_ROW = [[0.5, 0.7], [["1", "2"]], "v", 1_700_000_000_000, 1.0, [2.0, None], [[0.4, 0.6], None]]
DOCUMENTS = {
    "pytest-benchmark": pytest_file(pytest_record(data=[1e-6, 2e-6])),
    "google-benchmark": google_file(google_record(), {"name": "a_stddev", "real_time": 1, "time_unit": "us"}),
    "nvbench": nvbench_file(nvbench_state(cold_time_gpu_mean=1e-3)),
    "asv": asv_file(results={"a.time_it": ASV_ROW}),
    "github-action-benchmark": action_data(action_entry({"name": "a", "unit": "ns/iter", "value": 5})),
    "bencher": {"a": {"latency": {"value": 5, "lower_value": 4}}},
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 2**63, 10**30, 1e308, 5e-324]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["\0", "\ud800", "../../x", "nan", "1e999", "-", "9" * 30]),
    st.lists(st.none() | st.integers() | st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers() | st.none(), max_size=2),
)


def places(value, path=()):
    """Paths of every value in a document."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def changed(document, path, value):
    made = copy.deepcopy(document)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return made


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("any") / "results.json"


@pytest.mark.parametrize("name", DOCUMENTS)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_value_anywhere(path, name, data):
    document = DOCUMENTS[name]
    for _ in range(data.draw(st.integers(1, 2))):
        document = changed(document, data.draw(st.sampled_from(places(document))), data.draw(VALUES))
    path.write_text(json.dumps(document), encoding="utf-8", errors="surrogatepass")
    notes = Notes(path.name)
    with suppress(UsageError):  # of a version that is not known
        for session in sessions(path, name, notes, Hints()):
            refuse_unstorable(session.origin, "origin")
            class_of = {key: one.device_class for key, one in session.devices.items()}
            for found in groups(session.readings(), class_of):
                made = assemble(found, session, 1, notes)
                if made is not None:
                    refuse_unstorable(made.case, "case")
                    refuse_unstorable(made.attempts, "attempts")
                    for one, _ in made.answers:
                        refuse_unstorable(one, "answer")
                        assert (one.status is Status.OK) == (one.time_s is not None)
                        assert one.time_s is None or 0 < one.time_s < 1e300
