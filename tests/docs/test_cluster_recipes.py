"""Recipes of the docs: commands, units and manifests are what the programs they are for can read."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from perftrack.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page, language=""):
    """The fenced blocks of a page in this language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def manifests():
    return [yaml.safe_load(text) for text in blocks("clusters.md", "yaml")]


def test_every_perftrack_command_is_one():
    text = "\n".join(blocks("sweeps.md") + blocks("sweeps.md", "ini") + blocks("clusters.md", "yaml"))
    found = re.findall(r"perftrack (sweep [^\n>'\"]*)", text)
    assert len(found) == 4
    for words in found:
        name, *args = shlex.split(words)
        app.commands[name].make_context(name, args)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_units(tmp_path):
    service, timer = blocks("sweeps.md", "ini")
    # what it looks for on this machine, it shall find
    service = service.replace("/srv/perftrack/venv/bin/perftrack", sys.executable).replace("/usr/bin/git", "/bin/true")
    for name, text in (("perftrack.service", service), ("perftrack.timer", timer)):
        (tmp_path / name).write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert [line for line in done.stderr.splitlines() if "perftrack" in line] == []


def test_ray_up_accepts_its_file():
    """As `ray up` itself fills it in and checks it, by Ray's own schema."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = manifests()[0]
    made = prepare_config(config)
    validate_config(made)
    assert made["max_workers"] == 2
    for command in made["head_start_ray_commands"] + made["worker_start_ray_commands"]:
        subprocess.run(["sh", "-n", "-c", command], check=True)
        *_, last = command.split("; ")
        assert re.match(r"/srv/perftrack/venv/bin/ray (start|stop)", last)


def test_what_runs_on_kubernetes_has_the_token_the_database_and_the_gpus():
    _, cluster, nightly = manifests()
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert cluster["spec"]["authOptions"] == {"mode": "token"}
    head = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    (group,) = cluster["spec"]["workerGroupSpecs"]
    worker = group["template"]["spec"]["containers"][0]
    assert head["envFrom"] == [{"secretRef": {"name": "perftrack"}}]
    assert "envFrom" not in worker, "only the head has the database"
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert all(
        {one["name"]: one["value"] for one in each["env"]}["RAY_worker_niceness"] == "0" for each in (head, worker)
    )
    assert nightly["kind"] == "CronJob"
    sweep = nightly["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    names = {one["name"]: one for one in sweep["env"]}
    assert names["RAY_ADDRESS"]["value"] == f"http://{cluster['metadata']['name']}-head-svc:8265"
    assert names["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"] == {
        "name": cluster["metadata"]["name"],
        "key": "auth_token",
    }
    assert sweep["envFrom"] == head["envFrom"]


def test_the_database_stands_in_files_and_secrets_alone():
    assert "--runtime-env-json" not in "".join(blocks("sweeps.md") + blocks("clusters.md"))
    for manifest in manifests():
        assert "PERFTRACK_DB" not in yaml.safe_dump(manifest)
