"""The tests that need a card of their own go first: once this process has used one, the pool finds it busy."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != "test_submit_gpu.py")
