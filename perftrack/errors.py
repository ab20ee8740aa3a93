"""The error tree. Each class knows the exit code a command ends with.

PerftrackError
├── UsageError (2)             the caller can mend it: a name, a value, a file
│   ├── SuiteError             a declaration or a suite that cannot be imported
│   └── StoreReadOnlyError
├── InfrastructureError (3)    no verdict: database, Ray, git, disk
│   ├── StoreError
│   │   ├── SchemaOutdatedError
│   │   └── StoreAwayError
│   └── PoolError
└── IncompleteError (4)        nothing to judge: no baseline, nothing measured
    └── StoppedError           somebody cancelled the run, or its time was used up

A kernel that crashes, hangs or is wrong is not an error here: it is a `Measurement` with a status.
"""


class PerftrackError(Exception):
    """Base of all errors that perftrack raises on purpose; the message is one sentence for the user."""

    exit_code = 3


class UsageError(PerftrackError):
    """Bad input: names the thing, the value and the remedy."""

    exit_code = 2


class SuiteError(UsageError):
    """A benchmark's declaration is wrong or a suite cannot be imported; names the file and the benchmark."""


class InfrastructureError(PerftrackError):
    """Something outside the measured code failed, so there is no verdict."""

    exit_code = 3


class StoreError(InfrastructureError):
    """The database cannot be reached, read or written."""


class SchemaOutdatedError(StoreError):
    """The database has another schema than this program; names the command to type."""


class StoreAwayError(StoreError):
    """The database cannot be written now: not reached, locked or full; the same may be written later."""


class StoreReadOnlyError(UsageError):
    """The database's file, or its folder, may not be written."""


class PoolError(InfrastructureError):
    """Ray or a worker failed."""


class IncompleteError(PerftrackError):
    """Nothing that could be judged: no baseline, coverage too low, nothing measured."""

    exit_code = 4


class StoppedError(IncompleteError):
    """A run was stopped before its end, on purpose; what was measured is kept."""
