"""Ray's Jobs API: a cluster this machine is not a node of, reached through the dashboard of its head."""

import logging
import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from perftrack.errors import PoolError, UsageError

_ANSWER_S = 60.0
"""How long an answer may take; a network that swallows packets would be waited for without end."""

_STARTING_S, _PAUSE_S = 120.0, 2.0
"""How long a head that has just been started may not yet take jobs."""

_TALKATIVE = (
    "ray.dashboard.modules.dashboard_sdk",
    "ray.dashboard.modules.job.sdk",
    "ray._private.runtime_env.packaging",
)

_NO_CLIENT = "ray[default] is not installed here: `pip install 'perftrack[jobs]'`"

ENDED = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
"""States of a job after which nothing more comes."""


def without_credentials(text: str) -> str:
    """Addresses without a user's name and password: they go to logs and rows."""
    return re.sub(r"(?:(?<=//)|^(?!\w+://))[^\s'\"]*@", "", text)


def shown(address: str) -> str:
    """The same of one address, whatever its password is made of."""
    scheme, between, rest = address.rpartition("://")
    return scheme + between + rest.rpartition("@")[2]


def is_jobs_address(address: str | None) -> bool:
    """Whether this is the address of a dashboard, not of a cluster's own port."""
    return (address or "").startswith(("http://", "https://"))


class Jobs:
    """The head's dashboard. What Ray says of a job is a hint: whether it did its work is in the store."""

    def __init__(self, address: str) -> None:
        self.address = shown(address)
        """To be shown."""
        self.problem = ""
        """Why the last look reached nobody; empty where it did."""
        self._client = _client(address)

    def submit(self, folder: Path, entrypoint: str, name: str) -> None:
        """Ship a folder and start a command in it; PoolError where the head does not take it."""
        wanted = {"entrypoint": entrypoint, "runtime_env": {"working_dir": str(folder)}, "entrypoint_num_cpus": 0}
        until_s = time.monotonic() + _STARTING_S
        while True:
            try:
                self._client.submit_job(submission_id=name, **wanted)
            except (*_errors(), ValueError) as error:
                if "No available agent" in str(error) and time.monotonic() < until_s:
                    time.sleep(_PAUSE_S)
                    continue
                raise PoolError(f"the head at {self.address} does not take the job: {_first_line(error)}") from error
            return

    def look(self, name: str) -> tuple[str, str]:
        """State and everything a job has printed so far; empty, with a `problem`, while the head cannot be reached.

        PoolError where a head answers that does not know the job.
        """
        self.problem = ""
        try:
            return str(self._client.get_job_status(name).value), str(self._client.get_job_logs(name))
        except _errors() as error:
            self.problem = _first_line(error)
        if "status code 404" in self.problem:
            raise PoolError(f"the head at {self.address} has been restarted and does not know job {name} any more")
        return "", ""

    def stop(self, name: str) -> bool:
        """Ask a job to end; whether the head has heard it."""
        try:
            self._client.stop_job(name)
        except _errors():
            return False
        return True


def _client(address: str) -> Any:
    try:
        from ray.job_submission import JobSubmissionClient  # noqa: PLC0415 - slow, and only for those outside
    except ImportError as error:
        raise PoolError(_NO_CLIENT) from error
    for logger in _TALKATIVE:
        logging.getLogger(logger).setLevel(logging.WARNING)

    class Client(JobSubmissionClient):
        def _do_request(self, *args: Any, **options: Any) -> Any:
            return super()._do_request(*args, timeout=_ANSWER_S, **options)

    place, netloc = shown(address), urlsplit(address).netloc
    odd = "@" not in netloc or {*" '\""} & {*netloc}
    if place != address and odd:  # what Ray says of it would quote a part of them
        raise UsageError(
            f"name or password in the address of {place} must have each special character in percent: %2F is /"
        )
    try:
        return Client(address)
    except _errors() as error:  # Ray's own text does not say what to do
        text = _first_line(error)
        if "ray[default]" in text:
            raise PoolError(_NO_CLIENT) from error
        raise PoolError(
            f"no head answers at {place}: {text}; is its dashboard on (`ray start --head --include-dashboard=true`, "
            "ray[default]), and is its token in RAY_AUTH_TOKEN here?"
        ) from error


def _errors() -> tuple[type[Exception], ...]:
    from ray.exceptions import RayError  # noqa: PLC0415 - slow, and only for those outside

    return RuntimeError, OSError, RayError  # a token that is not accepted is one of the last kind


def _first_line(error: Exception) -> str:
    return without_credentials((str(error).strip().splitlines() or [type(error).__name__])[0])[:300]
