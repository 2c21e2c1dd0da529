"""What ships is what was tested: the containers run the demo's commands, and there are no default secrets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from backend.demo import Options
from backend.demo_commands import server_commands
from backend.embedded.place import Place

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return YAML(typ="safe").load((ROOT / "docker-compose.yml").read_text("utf-8"))


def plain(words: list[str]) -> list[str]:
    """Without the interpreter's path, niceness and the web's address, which differ by place."""
    words = words[words.index("-m") :]
    for option in ("--host", "--port"):
        if option in words:
            words[words.index(option) + 1] = "…"
    return words


def test_the_containers_run_the_commands_of_the_demo(compose: dict[str, Any]):
    folder = Path("var")
    place = Place(folder, folder, folder, folder, folder, None, None, ())
    for command in server_commands(Options(folder), place, {}):
        assert plain(list(compose["services"][command.name]["command"])) == plain(list(command.arguments))


def test_the_gpu_worker_differs_in_its_queue_and_name_alone(compose: dict[str, Any]):
    train = plain(list(compose["services"]["worker-train"]["command"]))
    gpu = plain(list(compose["services"]["worker-train-gpu"]["command"]))
    assert [word.replace("train-gpu", "train") for word in gpu] == train
    assert gpu != train


def test_the_image_runs_the_web_command(compose: dict[str, Any]):
    found = re.search(r"^CMD \[(.*)\]$", (ROOT / "Dockerfile").read_text("utf-8"), re.M)
    assert found is not None
    assert re.findall(r'"([^"]*)"', found.group(1)) == compose["services"]["web"]["command"]


def test_no_secret_has_a_default(compose: dict[str, Any]):
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    for name in ("SECRET_KEY", "POSTGRES_PASSWORD", "VALKEY_PASSWORD", "BASE_URL"):
        uses = re.findall(rf"\$\{{{name}([^}}]*)\}}", text)
        assert uses
        assert all(use.startswith(":?") for use in uses)
    assert compose["services"]["web"]["environment"]["MODE"] == "production"


def test_every_lasting_service_has_a_health_check_and_data_has_names(compose: dict[str, Any]):
    services = compose["services"]
    assert {name for name, service in services.items() if "healthcheck" not in service} == {"migrate"}
    assert set(compose["volumes"]) == {"postgres", "files"}
