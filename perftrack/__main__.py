"""`python -m perftrack` is the command."""

from perftrack.cli import main

main()
