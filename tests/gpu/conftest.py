"""The tests that need a card of their own go first: once this process has used one, the pool finds it busy."""

import pytest

ALONE = {"test_submit_gpu.py", "test_init_gpu.py", "test_faults_gpu.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in ALONE)
