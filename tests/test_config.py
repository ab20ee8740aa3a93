import pytest

from perftrack.config import Settings, database_url, resolve
from perftrack.errors import UsageError


def write(folder, text):
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_defaults_and_values(tmp_path):
    settings = resolve(write(tmp_path, '[tool.perftrack]\nsuites = ["bench"]\ncase-timeout = 30\n'))
    assert settings == Settings(suites=("bench",), case_timeout=30.0)
    assert (settings.rounds, settings.confirm_rounds) == (3, 5)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"no \[tool.perftrack\] section"),
        ("[tool.perftrack]\nsuits = ['x']", "unknown field `suits`"),
        ("[tool.perftrack]\nconfirm-minutes = nan", "`confirm-minutes` is nan; it must be a number that is finite"),
        ("[tool.perftrack]\ncase-timeout = inf", "`case-timeout` is inf; it must be a number that is finite"),
        ("[tool.perftrack]\nrounds = 0", "`rounds` is 0; it must be at least 1"),
        ("[tool.perftrack]\nrounds = 'three'", "Expected `int`, got `str` - at `\\$.rounds`"),
        ("[tool.perftrack]\nsuites = []", "`suites` is empty"),
        ("[tool.perftrack", "cannot be read"),
    ],
)
def test_mistakes_are_named(tmp_path, text, sentence):
    with pytest.raises(UsageError, match=sentence):
        resolve(write(tmp_path, text))


def test_database_flag_before_environment_before_file(monkeypatch):
    settings = Settings(db="sqlite:///file.db")
    monkeypatch.delenv("PERFTRACK_DB", raising=False)
    assert database_url(None) is None
    assert database_url(None, settings) == "sqlite:///file.db"
    monkeypatch.setenv("PERFTRACK_DB", "sqlite:///env.db")
    assert database_url(None, settings) == "sqlite:///env.db"
    assert database_url("sqlite:///flag.db", settings) == "sqlite:///flag.db"
