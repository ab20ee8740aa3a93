"""The `perftrack` command. Everything slow is imported by the command that needs it."""

import signal
import sys
from types import FrameType

import click

from perftrack.cli.log import harmless
from perftrack.errors import PerftrackError

INTERRUPTED, TERMINATED = 130, 143


def main() -> None:
    """Run the command line and exit with its code: 0 good, 1 slower, 2 usage, 3 infrastructure, 4 incomplete."""
    from perftrack.cli.app import app

    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = app(prog_name="perftrack", standalone_mode=False)
    except PerftrackError as error:
        click.echo(harmless(f"perftrack: {error}"), err=True)
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("perftrack: interrupted; what was measured is kept", err=True)
        code = INTERRUPTED
    except BrokenPipeError:
        # the reader went away (`| head`); silence the flush at exit too
        sys.stdout = None
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    sys.exit(TERMINATED)
