"""Large JSON in pieces: the same pieces whatever the size of the chunks, and places that are right."""

import io
import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrack.interop import scan, source
from perftrack.interop.scan import BadRecordError, Scanner, TornError, decode
from perftrack.interop.source import Chunks

DOCUMENT = {
    "before": {"x": [1, 2, {'y,"]}\\': 'q,}\\"'}], "benchmarks": [1]},
    "benchmarks": [{"n": 'a"]}'}, {"n": [1, [2], {}]}, 5, "s,", None, [], 1e-9, True],
    "after": "end",
}


def pieces(data, patterns, chunk, monkeypatch):
    """Records, the rest, and where it tore."""
    monkeypatch.setattr(source, "CHUNK_BYTES", chunk)
    scanner = Scanner(Chunks(io.BytesIO(data), 2**20), patterns)
    found, torn = [], None
    try:
        found.extend(scanner.members())
    except TornError as error:
        torn = error
    return found, scanner.rest(), torn


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 2**20])
@pytest.mark.parametrize("indent", [None, 1])
def test_records_and_the_rest(chunk, indent, monkeypatch):
    data = json.dumps(DOCUMENT, indent=indent).encode()
    found, rest, torn = pieces(data, (("benchmarks",),), chunk, monkeypatch)
    assert [one.decode() for one in found] == DOCUMENT["benchmarks"]
    assert rest == DOCUMENT | {"benchmarks": []}
    assert torn is None
    for index, one in enumerate(found):
        assert (one.number, one.path) == (index + 1, ("benchmarks", index))
        assert data[one.at : one.at + len(one.data)] == one.data


@pytest.mark.parametrize("chunk", [1, 5, 2**20])
def test_torn_at_every_byte(chunk, monkeypatch):
    data = json.dumps(DOCUMENT).encode()
    for length in range(1, len(data)):
        found, rest, torn = pieces(data[:length], (("benchmarks",),), chunk, monkeypatch)
        assert torn is not None
        assert torn.at == length
        assert [one.decode() for one in found] == DOCUMENT["benchmarks"][: len(found)]
        assert set(rest) <= set(DOCUMENT)
        assert length < 100 or rest["before"] == DOCUMENT["before"]


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    ).filter(lambda value: isinstance(value, dict | list)),
    st.integers(1, 9),
)
def test_members_of_any_document_are_what_a_parser_finds(document, chunk):
    data = json.dumps(document).encode()
    with pytest.MonkeyPatch.context() as patch:
        found, rest, torn = pieces(data, ((),), chunk, patch)
    expected = list(document.values()) if isinstance(document, dict) else document
    assert [one.decode() for one in found] == expected
    assert rest == type(document)()
    assert torn is None


def test_a_record_that_is_no_json_does_not_hide_the_next(monkeypatch):
    data = b'{"benchmarks": [{"a": nul}, {"a": 01}, {"a": 2}]}'
    found, _, torn = pieces(data, (("benchmarks",),), 8, monkeypatch)
    for bad in found[:2]:
        with pytest.raises(BadRecordError, match="no JSON"):
            bad.decode()
    assert found[2].decode() == {"a": 2}
    assert torn is None


def test_a_bracket_that_closes_nothing_is_named_by_its_byte(monkeypatch):
    data = b'{"benchmarks": [{"a": 1}, {"a": 1]}, {"a": 2}]}'
    found, _, torn = pieces(data, (("benchmarks",),), 8, monkeypatch)
    assert [one.decode() for one in found] == [{"a": 1}]
    assert (torn.at, str(torn)) == (data.index(b"1]") + 1, "`]` closes nothing in it")


@pytest.mark.parametrize("chunk", [1, 7, 2**20])
@pytest.mark.parametrize("between", [b"", b" ;\r\n\t", b"\n" * 300])
def test_what_follows_the_document_is_a_tear_at_its_first_byte(chunk, between, monkeypatch):
    first = b'{"benchmarks": [{"a": 1}]}' + between
    for more in (b'{"benchmarks": [{"a": 2}]}', b"]", b"x", b"\0"):
        found, rest, torn = pieces(first + more, (("benchmarks",),), chunk, monkeypatch)
        assert [one.decode() for one in found] == [{"a": 1}]
        assert rest == {"benchmarks": []}
        assert torn is not None
        assert torn.at == len(first)
    assert pieces(first, (("benchmarks",),), chunk, monkeypatch)[2] is None


def test_too_large_a_record_is_left_out_and_the_next_one_read(monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 64)
    data = b'{"benchmarks": [{"a": "%b"}, [%b 0], {"a": 2}]}' % (b"x" * 5000, b"7," * 3000)
    found = list(Scanner(Chunks(io.BytesIO(data), 1000), (("benchmarks",),)).members())
    assert [one.data for one in found] == [None, None, b'{"a": 2}']
    with pytest.raises(BadRecordError, match="larger than 64 MiB"):
        found[0].decode()


def test_what_is_beside_the_records_is_limited(monkeypatch):
    monkeypatch.setattr(scan, "MAX_REST_BYTES", 1000)
    _, _, torn = pieces(json.dumps({"a": list(range(1000))}).encode(), (("benchmarks",),), 64, monkeypatch)
    assert "beside its records" in str(torn)


def test_depth_and_digits_without_end_are_no_crash():
    for text in (b"[" * 100_000 + b"]" * 100_000, b"9" * 10_000):
        with pytest.raises(BadRecordError, match="no JSON that can be read"):
            decode(text)


def test_nan_and_infinity_are_read_as_numbers():
    assert decode(b"[-Infinity, Infinity]") == [float("-inf"), float("inf")]
    assert decode(b"NaN") != decode(b"NaN")


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "large.json"
    record = json.dumps({"name": "x", "data": [0.123456789] * 100}).encode()
    with path.open("wb") as file:
        file.write(b'{"benchmarks": [')
        for _ in range(8_000):
            file.write(record + b",")
        file.write(b"0")
        file.write(b"]}")
    assert path.stat().st_size > 9 * 2**20
    tracemalloc.start()
    with path.open("rb") as file:
        count = sum(1 for _ in Scanner(Chunks(file, 2**20), (("benchmarks",),)).members())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 8_001
    assert peak < 5 * 2**20
