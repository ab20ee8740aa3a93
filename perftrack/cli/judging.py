"""`perftrack judge` and `perftrack bisect`: when a step came, by what is stored and by measuring."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perftrack.cli import output as output_file
from perftrack.errors import UsageError

if TYPE_CHECKING:
    from perftrack.report import Style

_db = click.option("--db", metavar="URL", help="Database: a SQLAlchemy URL or a SQLite file [env PERFTRACK_DB].")
_json = click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)


@click.command()
@click.argument("of", default="", metavar="[SUITE|CASE-GLOB]")
@click.option("--replay", is_flag=True, help="Over the stored history, as if each commit had just come.")
@click.option("-d", "--device", default="", metavar="CLASS", help="Device class (a glob).")
@click.option("--since", default="", metavar="REV", help="Leave out what was told before this commit.")
@click.option(
    "--min-effect",
    type=float,
    metavar="SHARE",
    help="Tell changes of this size and more, as if benchmarks declared it.",
)
@_db
@_json
def judge(
    of: str,
    replay: bool,  # noqa: FBT001 (click passes options by name)
    device: str,
    since: str,
    min_effect: float | None,
    db: str | None,
    style: "Style",
) -> None:
    """Say what the rules of the history would have told, when, with what delay, and how often falsely.

    False is what was marked so (`perftrack ack --as invalid`); how many slowdowns nobody has looked at stands beside
    it. Nothing is stored. Exit codes: 0, or 4 where there is no history.
    """
    if not replay:
        raise UsageError("perftrack judge only replays the stored history: add --replay")
    from perftrack.pipeline.replays import replay_of
    from perftrack.report import replay as shown

    with _store(db) as store:
        made = replay_of(store, of, device=device, since=since, start=Path.cwd(), min_effect=min_effect)
    output_file.write_value(made, shown.text(made, _look()), style)


@click.command()
@click.argument("case")
@click.argument("span", metavar="GOOD..BAD")
@click.option(
    "--variant",
    default="",
    metavar="NAME",
    help="Candidate to look at [default: that with the clearest step], or the baseline variant.",
)
@click.option("--error", is_flag=True, help="Look for a step of the error against float64, not of the time.")
@click.option("--rounds", type=int, metavar="N", help="Fresh processes the ends are measured in [default: 5].")
@click.option("-d", "--device", default="", metavar="CLASS", help="Device class (a glob), or `cpu`.")
@click.option("--parallel", is_flag=True, help="A commit's rounds on all devices of the class at once.")
@click.option("--quick", is_flag=True, help="Shorter measuring, less certain.")
@click.option(
    "--address", metavar="HOST:PORT|URL", envvar="RAY_ADDRESS", help="Ray cluster, or its dashboard [default: here]."
)
@_db
@_json
def bisect(
    case: str,
    span: str,
    variant: str,
    error: bool,  # noqa: FBT001
    rounds: int | None,
    device: str,
    parallel: bool,  # noqa: FBT001 (click passes options by name)
    quick: bool,  # noqa: FBT001
    address: str | None,
    db: str | None,
    style: "Style",
) -> None:
    """Find the commit that made CASE slower, faster, less or more accurate between two commits.

    Commits are measured beside the good end, in as many rounds as step and noise ask for, those in the middle first, in
    first-parent order. What cannot be built or collected is skipped. The same command again goes on where it was.
    Exit codes: 0 found (or a range, where commits were skipped), 2 usage, 3 infrastructure, 4 no step beyond the noise.
    """
    from perftrack.cli.talk import make_talk
    from perftrack.pipeline.bisect import Request
    from perftrack.pipeline.bisect import bisect as run
    from perftrack.report import bisect as shown

    request = Request(
        start=Path.cwd(),
        case=case,
        span=span,
        variant=variant,
        error=error,
        rounds=rounds,
        device=device,
        parallel=parallel,
        quick=quick,
        database=db,
        address=address,
    )
    made = run(request, make_talk())
    output_file.write_value(made, shown.text(made, _look()), style)


def _look() -> Any:
    from perftrack.report import text

    return text.look(terminal=sys.stdout.isatty())


def _store(db: str | None) -> Any:
    from perftrack import config
    from perftrack.store import Store, default_url

    return Store.open(config.database_url(db, config.settings_near(Path.cwd())) or default_url(), create=False)
