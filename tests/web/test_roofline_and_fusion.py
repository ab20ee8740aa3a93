"""The pages of a device class: where variants stand below the ceiling, and from which size fusion pays."""

import csv
import io
from urllib.parse import urlencode

import pytest
from looking import Page
from size_builders import BYTES_PER_S, CLASS, SIZES, head, sizes, time_s
from starlette.testclient import TestClient
from web_builders import run_uid

from perftrack.store.latest import latest, newest_class
from perftrack.web import fusion, roofline
from perftrack.web.publish import publish
from perftrack.web.server import application

BENCHMARK = f"/fusion?{urlencode({'suite': 'chains', 'benchmark': 'chain'})}"


@pytest.fixture
def sized(store):
    sizes(store)
    return store


@pytest.fixture
def asked(sized):
    with TestClient(application(sized), base_url="http://localhost") as opened:
        yield opened


def svgs(page):
    return [tag for tag, _ in page.tags].count("svg")


def test_roofline_has_every_variant(asked):
    page = Page(asked.get("/roofline").text)
    assert page.dangerous() == []
    assert svgs(page) == 2
    assert f"Roofline of {CLASS}" in page.text
    assert "copy ceiling 4000 GB/s" in page.text
    assert "68 variants" in page.text
    assert "4 of benchmarks that count no operations" in page.text
    whole = asked.get("/roofline.json").json()
    assert whole["device_class"] == CLASS
    assert whole["ceiling_bytes_per_s"] == pytest.approx(BYTES_PER_S)
    assert len(whole["points"]) == 4 * (2 * len(SIZES) + 1)
    (one,) = [
        point for point in whole["points"]
        if (point["case"], point["variant"]) == (f"chain[dtype=float16,n={SIZES[-1]}]", "fused")
    ]  # fmt: skip
    assert one["intensity_flops_per_byte"] == pytest.approx(0.5)
    assert one["time_s"] == pytest.approx(time_s("fused", SIZES[-1], 2))
    assert one["utilization"] == pytest.approx(6 * SIZES[-1] / time_s("fused", SIZES[-1], 2) / BYTES_PER_S)
    assert (one["role"], one["cached"], one["revision"], one["run"]) == (
        "candidate", False, head(1).label, run_uid(1),
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(asked.get("/roofline.csv?suite=copies").text)))
    assert [(row["benchmark"], row["variant"], row["flops"], row["intensity_flops_per_byte"]) for row in rows] == [
        ("copy", name, "0", "") for name in ("fused", "fused_slow", "steps", "unfused")
    ]


def test_every_point_is_drawn_and_named(asked):
    marks = asked.get("/roofline?suite=chains").text.count("<title>chain[")
    assert marks == 2 * 4 * 2 * len(SIZES)


def test_the_table_is_pages_and_leaves_nothing_out(asked, monkeypatch):
    monkeypatch.setattr(roofline, "ON_A_PAGE", 30)
    links = []
    for number in (1, 2, 3):
        page = Page(asked.get(f"/roofline?page={number}").text)
        assert f"page {number} of 3, 68 variants" in page.text
        links += [url for url in page.links if url.startswith("case?")]
    assert len(links) == 68


def test_where_fusion_starts_to_pay(asked):
    page = Page(asked.get(BENCHMARK).text)
    assert page.dangerous() == []
    assert svgs(page) == 4 + 1  # speedup and fusion gain of two dtypes, one efficiency
    data = asked.get(BENCHMARK.replace("/fusion", "/fusion.json")).json()
    onsets = {(one["kind"], one["variant"]): one for one in data["onsets"]}
    assert set(onsets) == {(f"dtype=float{bits}", name) for bits in (16, 32) for name in ("fused", "fused_slow")}
    pays = onsets["dtype=float32", "fused"]
    assert (pays["by"], pays["sizes"], pays["from_bytes"]) == ("fusion gain", len(SIZES), 12 * SIZES[0])
    assert onsets["dtype=float16", "fused_slow"]["from_bytes"] is None
    assert "fused dtype=float32 at every size fusion gain 8" in page.text
    assert "not at the largest size" in page.text


def test_efficiency_of_each_benchmark(asked):
    (fused,) = [
        one
        for one in asked.get("/fusion.json").json()["lines"]
        if (one["benchmark"], one["variant"]) == ("chain", "fused")
    ]
    gains = [
        time_s("steps", n, width) / time_s("fused", n, width)
        for n in SIZES for width in (2, 4) if 3 * n * width >= 60 * 2**20
    ]  # fmt: skip
    mean = 1.0
    for gain in gains:
        mean *= gain ** (1 / len(gains))
    assert (fused["cases"], fused["used"]) == (16, len(gains))
    assert fused["fusion_gain"] == pytest.approx(mean)
    assert fused["fusion_efficiency"] == pytest.approx(mean * 3 / 8)
    page = Page(asked.get("/fusion").text)
    assert svgs(page) == 2
    assert any("benchmark=chain" in url for url in page.links)


def test_onset_is_the_first_of_all_larger_sizes():
    def point(size, gain):
        return fusion.SizePoint(
            suite="s", case=f"b[n={size}]", benchmark="b", variant="fused", kind="", min_bytes=size, time_s=1.0,
            speedup=gain, fusion_gain=None, expected_gain=None, fusion_efficiency=None, cached=False, revision="r",
            run="u",
        )  # fmt: skip

    for gains, expected in (
        ((1.2, 1.0, 1.06, 1.3), 3), ((1.2, 1.2), 1), ((1.2, 1.04), None), ((1.04,), None), ((1.05,), 1),
    ):  # fmt: skip
        (onset,) = fusion._onsets([point(at, gain) for at, gain in enumerate(gains, 1)])
        assert (onset.from_bytes, onset.by) == (expected, "speedup")


def test_what_the_newest_run_left_out_is_taken_from_before(sized):
    sizes(sized, 2, only=SIZES[:1])
    found = sized.read(lambda connection: latest(connection, CLASS))
    by_run = {(one.summary.case_key, one.revision) for one in found if one.summary.suite == "chains"}
    assert (f"chain[dtype=float16,n={SIZES[0]}]", head(2).label) in by_run
    assert (f"chain[dtype=float16,n={SIZES[1]}]", head(1).label) in by_run
    assert len(by_run) == 2 * len(SIZES)
    assert sized.read(newest_class) == CLASS


def test_without_anything_measured(store):
    with TestClient(application(store), base_url="http://localhost") as asked:
        for name in ("roofline", "fusion"):
            assert "within the newest 60 runs" in Page(asked.get(f"/{name}").text).text
            assert asked.get(f"/{name}.json").json()["points"] == []
        answer = asked.get("/roofline?device=no")
        assert (answer.status_code, "nothing measured on 'no'" in Page(answer.text).text) == (404, True)
        assert asked.get("/fusion?benchmark=no").status_code == 404


def test_published(sized, tmp_path, monkeypatch):
    monkeypatch.setattr(roofline, "ON_A_PAGE", 30)
    publish(sized, tmp_path / "site", runs=1, say=print)
    page = Page((tmp_path / "site" / "roofline.html").read_text("utf-8"))
    (following,) = {url for url in page.links if "/2-NVIDIA" in url or "H200-141G-2" in url}
    assert "page 2 of 3" in (tmp_path / "site" / following).read_text("utf-8")
    overview = Page((tmp_path / "site" / "fusion.html").read_text("utf-8"))
    (chain,) = {url for url in overview.links if "chain-NVIDIA" in url and "fusion/" in url}
    assert "at every size" in (tmp_path / "site" / chain).read_text("utf-8")
