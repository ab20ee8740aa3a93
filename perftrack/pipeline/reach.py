"""Which of the devices that many runs ask for can be had now: what cannot is not waited for with each of them."""

from perftrack.errors import PerftrackError

_IN_A_ROW = 2
"""Runs that break off on a device one after the other; the second shows that it is not the commit's doing."""


class Reach:
    """Devices, as they were asked for, and the errors that measuring on each ended with since it last went well."""

    def __init__(self) -> None:
        self._errors: dict[str, list[PerftrackError]] = {}

    def failed(self, device: str, error: PerftrackError, *, begun: bool) -> None:
        """A run ended so on a device; where not even its first job was given out, that needs no second one."""
        self._errors.setdefault(device, []).extend([error] * (1 if begun else _IN_A_ROW))

    def worked(self, device: str) -> None:
        """A run ended well there."""
        self._errors.pop(device, None)

    def why_not(self, device: str) -> str:
        """Why nothing more shall be tried on a device; empty where it may be."""
        errors = self._errors.get(device, [])
        return str(errors[-1]) if len(errors) >= _IN_A_ROW else ""
