"""The published site: every link resolves, nothing foreign is touched."""

import os
from urllib.parse import unquote, urlsplit

import pytest
from hostile import NAMES
from looking import Page
from web_builders import Names, fill, hostile

from perftrack.errors import UsageError
from perftrack.web import cases
from perftrack.web.publish import publish


def written(store, folder, **more):
    publish(store, folder, runs=more.pop("runs", 50), say=print)
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def check_links(folder, files):
    """Each link of each page leads to one of the files; the number of links."""
    count = 0
    for name in files:
        if name.endswith(".html"):
            page = Page((folder / name).read_text("utf-8"))
            assert page.dangerous() == [], name
            for url in page.links:
                if url != "data:," and not url.startswith("#"):
                    parts = urlsplit(url)
                    assert (parts.scheme, parts.netloc, parts.query) == ("", "", ""), url
                    led = os.path.normpath(os.path.join(os.path.dirname(name), unquote(parts.path)))  # noqa: PTH118, PTH120
                    assert led in files, (name, url)
                    count += 1
    return count


def test_every_link_resolves(filled, tmp_path):
    folder = tmp_path / "new" / "site"
    files = written(filled, folder, runs=12)
    assert check_links(folder, files) > 500
    for name in ("index", "cases", "regressions", "devices", "data"):
        assert {f"{name}.{kind}" for kind in ("html", "json", "csv")} <= files
    home = Page((folder / "index.html").read_text("utf-8"))
    assert "1 OPEN regression" in home.text
    # from the red cell to the report, and from there to the picture
    (red,) = {url for url in home.links if url.startswith("run/00160016")}
    report = folder / red
    (history,) = {
        url for url in Page(report.read_text("utf-8")).links
        if url.startswith("../case/") and "add-mul" in url and "H200" in url
    }  # fmt: skip
    assert "<svg" in (report.parent / history).read_text("utf-8")
    assert not any(tag == "form" for name in files if name.endswith(".html")
                   for tag, _ in Page((folder / name).read_text("utf-8")).tags)  # fmt: skip


def test_publishing_again_takes_away_only_what_it_wrote(red_store, tmp_path):
    folder = tmp_path / "site"
    first = written(red_store, folder)
    (folder / "CNAME").write_text("perf.example")
    second = written(red_store, folder, runs=1)
    assert "CNAME" in second
    assert len([name for name in first if name.startswith("run/")]) == 9
    assert len([name for name in second if name.startswith("run/")]) == 3
    check_links(folder, second)


def test_a_folder_of_something_else_is_refused(store, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match="something else"):
        publish(store, tmp_path, runs=1, say=print)
    with pytest.raises(UsageError, match="is a file"):
        publish(store, tmp_path / "mine.txt", runs=1, say=print)
    (tmp_path / ".perftrack-site.json").write_text('["../outside", "mine.txt", 3]')
    outside = tmp_path.parent / "outside"
    outside.write_text("x")
    publish(store, tmp_path, runs=1, say=print)
    assert outside.exists()
    assert not (tmp_path / "mine.txt").exists()


def test_many_series_are_pages(store, tmp_path, monkeypatch):
    monkeypatch.setattr(cases, "ON_A_PAGE", 2)
    fill(store, Names(cases=("add[n=1]", "add[n=2]", "add[n=3]"), suites=("s",), classes=("c",)), commits=1)
    folder = tmp_path / "site"
    files = written(store, folder)
    check_links(folder, files)
    (second,) = [name for name in files if name.startswith("cases/2") and name.endswith(".html")]
    assert "add[n=3]" in (folder / second).read_text("utf-8")


@pytest.mark.parametrize("name", [NAMES[key] for key in ("attribute", "long", "empty")])
def test_hostile_names(store, tmp_path, name):
    fill(store, hostile(name), commits=2, slow_from=2)
    folder = tmp_path / "site"
    files = written(store, folder)
    assert check_links(folder, files) > 50
    assert all(path.resolve().is_relative_to(folder) for path in folder.rglob("*"))


def test_names_that_are_paths_stay_in_the_folder(store, tmp_path):
    fill(store, hostile("../../../x"), commits=2, slow_from=2)
    folder = tmp_path / "deep" / "site"
    check_links(folder, written(store, folder))
    assert {path.name for path in tmp_path.rglob("*") if path.is_file() and not path.is_relative_to(folder)} == {
        "perf.db", *(path.name for path in tmp_path.glob("perf.db-*"))
    }  # fmt: skip
