"""Ray itself: an embedded one of our own, or an existing cluster. Always an explicit address.

Without one, Ray would follow the address file that an earlier cluster left behind.
"""

import os
import secrets
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from perftrack.errors import PoolError
from perftrack.measure.child_environment import import_path

OBJECT_STORE_BYTES = 512 * 2**20
"""Room for two trees of 100 MB and the results on their way."""

_CONNECT_S = 5.0


@contextmanager
def ray_session(address: str, folder: Path) -> Generator[ModuleType]:
    """The `ray` module, connected to `address` (`local` or `host:port`); shut down afterwards.

    The embedded Ray keeps its sockets and logs in `folder` and listens on all interfaces, so that a random
    token is its only door.
    """
    for name in ("RAY_ADDRESS", "RAY_NAMESPACE", "RAY_RUNTIME_ENV_HOOK", "RAY_JOB_CONFIG_JSON_ENV_VAR"):
        os.environ.pop(name, None)
    os.environ["PYTHONPATH"] = import_path(os.environ)  # the workers are started with this environment
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"  # under `uv run` Ray would ship the working directory
    if address == "local":
        _configure_embedded()
    else:
        _knock(address)
    import ray  # noqa: PLC0415 - reads its environment when imported
    from ray.exceptions import RayError  # noqa: PLC0415

    try:
        if address == "local":
            _start_embedded(ray, folder)
        else:
            ray.init(address=address, log_to_driver=False, configure_logging=False)
        yield ray
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        if ray.is_initialized():
            raise
        text = str(error).strip().splitlines() or [type(error).__name__]
        raise PoolError(f"Ray at {address} cannot be used: {text[0]}") from error
    finally:
        with suppress(ConnectionError):
            ray.shutdown()


def _configure_embedded() -> None:
    os.environ.update(
        RAY_AUTH_MODE="token",
        RAY_AUTH_TOKEN=secrets.token_hex(32),
        RAY_worker_niceness="0",  # Ray's own 15 spoils CPU results
        RAY_task_events_report_interval_ms="0",
    )


def _start_embedded(ray: ModuleType, folder: Path) -> None:
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        num_cpus=len(os.sched_getaffinity(0)),
        num_gpus=visible_gpus(),
        object_store_memory=OBJECT_STORE_BYTES,
        _temp_dir=str(folder / "ray"),
    )


def visible_gpus() -> int:
    """How many GPUs this process may use: those of NVML, within CUDA_VISIBLE_DEVICES."""
    import pynvml  # noqa: PLC0415 - only an embedded Ray asks

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return 0
    try:
        count = int(pynvml.nvmlDeviceGetCount())
    finally:
        pynvml.nvmlShutdown()
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return count
    names = [name.strip() for name in listed.split(",")]
    hidden = next((i for i, name in enumerate(names) if name in {"", "-1", "NoDevFiles"}), len(names))
    return min(count, hidden)


def head_answers(ray: ModuleType) -> bool:
    """Whether somebody listens where the head of the cluster is."""
    return listens(ray.get_runtime_context().gcs_address) is None


def listens(address: str, timeout_s: float = 1.0) -> OSError | None:
    """None where somebody listens at `host:port`, else why not."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
    except OSError as error:
        return error
    return None


def _knock(address: str) -> None:
    """PoolError at once where nobody listens; Ray itself tries for minutes and may end the process."""
    if error := listens(address, _CONNECT_S):
        raise PoolError(
            f"no Ray cluster answers at {address}: {error.strerror or error}; start one or unset RAY_ADDRESS"
        ) from error
