"""pytest plug-in: `pytest suites/` runs every case and variant as a pytest-benchmark item."""
