"""packaging/Containerfile and packaging/kubernetes.yaml: what they promise, and that they agree."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from containerfile import Instruction, instructions, the

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")


@pytest.fixture(scope="module")
def image() -> list[Instruction]:
    return list(instructions())


@pytest.fixture(scope="module")
def manifest(root: Path) -> dict[str, Any]:
    documents = list(yaml.safe_load_all((root / "packaging" / "kubernetes.yaml").read_text(encoding="utf-8")))
    return {document["kind"]: document for document in documents}


@pytest.fixture(scope="module")
def pod(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["Deployment"]["spec"]["template"]["spec"]
    return found


@pytest.fixture(scope="module")
def container(pod: dict[str, Any]) -> dict[str, Any]:
    (found,) = pod["containers"]
    return dict(found)


def variables() -> dict[str, str]:
    return dict(word.split("=", 1) for word in the("ENV").words)


# ---- the image ----


def test_it_has_two_stages_and_only_the_environment_goes_from_one_to_the_other(image: list[Instruction]) -> None:
    assert [one.text for one in image if one.name == "FROM"] == [
        "docker.io/library/python:3.13-slim AS build",
        "docker.io/library/python:3.13-slim",
    ]
    assert [one.text for one in image if one.name == "COPY" and one.stage == 2] == ["--from=build /opt/cntk /opt/cntk"]
    assert [one.name for one in image if one.name == "RUN" and one.stage == 2] == []


def test_it_copies_what_the_package_is_built_of(image: list[Instruction], root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    copied = {source for one in image if one.name == "COPY" and one.stage == 1 for source in one.words[:-1]}
    needed = {*project["tool"]["setuptools"]["package-dir"].values(), *project["project"]["license-files"], project["project"]["readme"]}
    assert needed | {"pyproject.toml", "packaging"} <= copied
    assert [source for source in copied if not (root / source).exists()] == []


def test_the_user_has_no_privileges(image: list[Instruction]) -> None:
    user, _, group = the("USER").text.partition(":")
    assert int(user) >= 10000
    assert int(group) >= 10000
    assert image.index(the("USER")) < image.index(the("ENTRYPOINT"))


def test_what_is_written_is_in_tmp() -> None:
    assert [name for name, value in variables().items() if "CACHE" in name and not value.startswith("/tmp/")] == []
    assert variables()["PYTHONDONTWRITEBYTECODE"] == "1"


def test_its_health_is_asked_for_at_the_port_that_it_serves() -> None:
    port = the("EXPOSE").text
    entry = the("ENTRYPOINT").words
    assert entry[:2] == ["cntk", "serve"]
    assert (entry[entry.index("--host") + 1], entry[entry.index("--port") + 1]) == ("0.0.0.0", port)
    command = json.loads(the("HEALTHCHECK").text.partition("CMD ")[2])
    assert command[:2] == ["python", "-c"]
    assert f"http://127.0.0.1:{port}/v2/health/ready" in command[2]
    compile(command[2], "HEALTHCHECK", "exec")


def test_a_continued_line_is_one_and_comments_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text('# no\nFROM a AS b\nENV A=1 \\\n    B=\'2 3\'\n  # no\n\nFROM c\nCMD ["d", "e f"]\n')
    found = list(instructions(tmp_path / "file"))
    assert [(one.stage, one.name, one.words) for one in found] == [
        (1, "FROM", ["a", "AS", "b"]),
        (1, "ENV", ["A=1", "B=2 3"]),
        (2, "FROM", ["c"]),
        (2, "CMD", ["d", "e f"]),
    ]


# ---- the manifest ----


def test_the_service_finds_the_pods_and_their_port(manifest: dict[str, Any], container: dict[str, Any]) -> None:
    deployment, service = manifest["Deployment"]["spec"], manifest["Service"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"].items() <= labels.items()
    assert service["selector"].items() <= labels.items()
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": int(the("EXPOSE").text)}
    assert [port["targetPort"] for port in service["ports"]] == ["http"]


@pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_probes_ask_what_the_server_answers(container: dict[str, Any], probe: str) -> None:
    asked = container[probe]["httpGet"]
    assert asked["port"] == "http"
    assert asked["path"] == ("/v2/health/live" if probe == "livenessProbe" else "/v2/health/ready")


def test_the_pod_has_no_privileges_and_a_root_that_is_read_only(pod: dict[str, Any], container: dict[str, Any]) -> None:
    user, _, group = the("USER").text.partition(":")
    allowed = pod["securityContext"]
    assert (allowed["runAsNonRoot"], allowed["runAsUser"], allowed["runAsGroup"]) == (True, int(user), int(group))
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False


def test_every_volume_is_mounted_and_tmp_can_be_written(pod: dict[str, Any], container: dict[str, Any]) -> None:
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert {mount["name"] for mount in mounts.values()} == volumes.keys()
    assert "emptyDir" in volumes[mounts["/tmp"]["name"]]
    assert "readOnly" not in mounts["/tmp"]
    assert mounts[the("CMD").words[0]]["readOnly"]


def test_resources_are_limited_and_requests_fit(container: dict[str, Any]) -> None:
    resources = container["resources"]
    assert resources["requests"].keys() == resources["limits"].keys() == {"cpu", "memory"}
    assert float(resources["requests"]["cpu"]) <= float(resources["limits"]["cpu"])
    assert int(container["args"][container["args"].index("--threads") + 1]) == float(resources["limits"]["cpu"])


def test_requests_have_time_to_end(pod: dict[str, Any]) -> None:
    from cntk.commands.serve import _parser

    assert pod["terminationGracePeriodSeconds"] > _parser().parse_args(["models"]).grace
