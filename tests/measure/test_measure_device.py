"""Naming devices, and what is known of them."""

import pytest

from perftrack.measure.datasheet import peak_bytes_per_s
from perftrack.measure.device import absent, device_class
from perftrack.measure.methods import default_method, quick_method
from perftrack.measure.pipe import PrivatePipe

MIB = 1 << 20


@pytest.mark.parametrize(
    ("name", "mib", "expected"),
    [
        ("NVIDIA H200", 143771, "NVIDIA-H200-141G"),
        ("NVIDIA H100 80GB HBM3", 81559, "NVIDIA-H100-80GB-HBM3-80G"),
        ("NVIDIA A100-SXM4-40GB", 40960, "NVIDIA-A100-SXM4-40GB-40G"),
        ("NVIDIA GH200 480GB", 97871, "NVIDIA-GH200-480GB-96G"),
    ],
)
def test_a_device_class_is_its_model_and_memory(name, mib, expected):
    assert device_class(name, mib * MIB) == expected


@pytest.mark.parametrize(
    ("name", "terabytes"),
    [
        ("NVIDIA H200", 4.8),
        ("NVIDIA H100 80GB HBM3", 3.35),
        ("NVIDIA H100 PCIe", 2.0),
        ("NVIDIA A100-SXM4-40GB", 1.555),
        ("NVIDIA A100-SXM4-80GB", 2.039),
        ("NVIDIA A100 80GB PCIe", 1.935),
        ("NVIDIA GH200 480GB", 4.0),
        ("NVIDIA GH200 144G HBM3e", 4.8),
    ],
)
def test_peaks_are_those_of_the_datasheets(name, terabytes):
    assert peak_bytes_per_s(name) == pytest.approx(terabytes * 1e12)


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 9999", "NVIDIA H200 MIG 1g.18gb"])
def test_an_unknown_peak_is_none(name):
    assert peak_bytes_per_s(name) is None


def test_methods_of_backends_never_share_a_digest():
    made = [maker(backend) for maker in (default_method, quick_method) for backend in ("cuda", "cpu")]
    assert len({method.digest for method in made}) == 4
    assert {method.timer for method in made} == {"event", "host"}


def test_a_missing_device_is_a_report_with_a_problem():
    report = absent("cuda", "CUDA sees no GPU here")
    assert report.problem == "CUDA sees no GPU here"
    assert report.device.uuid == ""


def test_the_private_pipe_is_not_fd_1(tmp_path):
    import subprocess
    import sys

    program = (
        "from perftrack.measure.pipe import PrivatePipe\n"
        "pipe = PrivatePipe(); print('noise', flush=True); pipe.send({'a': 'x' * 100_000})\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout == b'{"a":"' + b"x" * 100_000 + b'"}\n'
    assert ended.stderr == b"noise\n"
    assert PrivatePipe.__doc__


def test_without_a_gpu_the_child_says_so(talk, monkeypatch):
    from perftrack.measure.wire import Order

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    heard = talk(Order(backend="cuda"))
    assert heard.code == 0
    assert "GPU" in heard.hello.report.problem
    assert heard.said_bye
