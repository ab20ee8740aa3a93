"""What is said where no device is of the class that was asked for."""

import pytest

from perftrack.errors import PoolError, UsageError
from perftrack.pool.roster import no_match

pytestmark = pytest.mark.fault


def test_a_class_that_may_be_among_busy_devices_is_not_called_unknown():
    error = no_match(
        "NVIDIA-H200*", ["NVIDIA-L4-24G"], ["a cuda device of node n1 was not free and is left out"], gpu=True
    )
    assert isinstance(error, PoolError)
    assert str(error) == (
        "no device of class 'NVIDIA-H200*' is free (a cuda device of node n1 was not free and is left out); "
        "free are NVIDIA-L4-24G"
    )


def test_a_class_that_nothing_has_is_the_callers_mistake():
    error = no_match("NVIDIA-H20O*", ["NVIDIA-H200-141G"], [], gpu=True)
    assert isinstance(error, UsageError)
    assert str(error) == "unknown device class 'NVIDIA-H20O*': the pool has NVIDIA-H200-141G and cpu"
