"""The real `perftrack` command, but for the measuring child: `python driver.py ARGS`."""

import functools
from pathlib import Path

from perftrack.cli import main
from perftrack.pipeline import execution

CHILD = ("-P", "-s", str(Path(__file__).with_name("simulated_child.py")))

execution.Pool = functools.partial(execution.Pool, child=CHILD)
main()
