"""The real `perftrack` command, impatient with a head that is out of reach: `python impatient.py ARGS`."""

from perftrack.cli import main
from perftrack.pipeline import outside

outside.PATIENCE_S = 1.0
main()
