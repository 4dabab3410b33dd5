"""The Helm chart: rendered by helm, checked by kubeconform with Kubernetes' own schemas. Its configuration is loaded.

It was not installed in a cluster. ``make helm`` builds the two programs.
"""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import yaml  # type: ignore[import-untyped]
from typer.main import get_command

import federator
from federator.cli.app import app
from federator.settings import Settings, parse_settings
from tests.fixtures.availability import fail_or_skip

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm"
SPARK = "spark.staging=s3a://lake/staging"
ON_KUBERNETES = (
    "spark.mode=kubernetes",
    SPARK,
    "spark.kubernetes.image=spark:4.3.0-python3.12",
    "secretFiles[0].name=lake-keys",
)
RELEASES = {
    "default": (),
    "kubernetes": (*ON_KUBERNETES, "spark.kubernetes.archive=s3a://lake/executors.tar.gz", "serviceMonitor.enabled=true"),
    "connect": ("spark.mode=connect", SPARK, "spark.connect.url=sc://spark:15002"),
    "small": ("state.enabled=false", "podDisruptionBudget.enabled=false", "networkPolicy.enabled=false", "api.replicas=1"),
}
each_release = pytest.mark.parametrize("values", RELEASES.values(), ids=RELEASES)


@cache
def tools() -> Path:
    """The directory of helm, kubeconform and the schemas."""
    cached = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lance-federator" / "helm"
    script = (ROOT / ".ci" / "helm").read_text(encoding="utf-8")
    pinned = dict(line.split("=", 1) for line in script.splitlines() if "=v" in line and " " not in line)
    names = ("helm", "kubeconform", "kubernetes", "prometheus_operator")
    directory = cached / "-".join(pinned[name] for name in names)
    if not (directory / "ready").exists():
        fail_or_skip("helm and kubeconform are missing: make helm")
    return directory


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([tools() / "helm", *arguments], capture_output=True, text=True, check=False)


def template(values: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    options = [option for value in values for option in ("--set", value)]
    return helm("template", "company", str(CHART), "--namespace", "data", *options)


@cache
def render(values: tuple[str, ...]) -> str:
    done = template(values)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(values: tuple[str, ...], kind: str) -> dict[str, Any]:
    """The objects of one kind by name."""
    documents = [document for document in yaml.safe_load_all(render(values)) if document and document["kind"] == kind]
    return {document["metadata"]["name"]: document for document in documents}


def pods(values: tuple[str, ...]) -> dict[str, Any]:
    """The pod templates by component."""
    owners = [*objects(values, "Deployment").values(), *objects(values, "Job").values()]
    templates = [owner["spec"]["template"] for owner in owners]
    return {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod for pod in templates}


def check(manifests: str) -> subprocess.CompletedProcess[str]:
    location = f"{tools() / 'schemas'}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    command = [tools() / "kubeconform", "-strict", "-schema-location", location]
    return subprocess.run(command, input=manifests, capture_output=True, text=True, check=False)


def load(values: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of the rendered configuration file."""
    (config,) = objects(values, "ConfigMap").values()
    for variable in ("FEDERATOR_INDEX", "FEDERATOR_TOKEN"):
        monkeypatch.setenv(variable, "postgresql+psycopg://federator@127.0.0.1/federator")
    return parse_settings(tomllib.loads(config["data"]["federator.toml"]), Path("/var/lib/federator/federator.toml"))


def selects(labels: Mapping[str, str], selector: Mapping[str, Any]) -> bool:
    """Whether a selector of Kubernetes matches labels. ``In`` is the only operator of the chart."""
    expressions = selector.get("matchExpressions", [])
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(expression["key"]) in expression["values"] for expression in expressions
    )


def test_helm_finds_no_fault() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout
    assert "0 chart(s) failed" in done.stdout


@each_release
def test_kubernetes_takes_every_object(values: tuple[str, ...]) -> None:
    done = check(render(values))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("replicas: 2", "replica: 2"), ("maxUnavailable: 1", "maxUnavailable: [1]"), ("interval: 60s", "interval: soon")],
)
def test_the_schemas_refuse_mistakes(right: str, wrong: str) -> None:
    manifests = render(RELEASES["kubernetes"])
    assert right in manifests
    assert check(manifests.replace(right, wrong)).returncode == 1


@each_release
def test_its_configuration_is_one(values: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(values, monkeypatch)
    masters = {"spark.mode=kubernetes": "k8s://https://kubernetes.default.svc", "spark.mode=connect": "sc://spark:15002"}
    assert settings.spark.master == masters.get((*values, "")[0], "local[*]")
    assert settings.spark.staging == ("" if settings.spark.master == "local[*]" else "s3a://lake/staging")


def test_executors_get_the_secrets_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = load(RELEASES["kubernetes"], monkeypatch).spark.conf
    (container,) = pods(RELEASES["kubernetes"])["worker"]["spec"]["containers"]
    references = {entry["name"]: entry["valueFrom"] for entry in container["env"]}
    assert references.pop("SPARK_LOCAL_HOSTNAME") == {"fieldRef": {"fieldPath": "status.podIP"}}
    assert {name: "{name}:{key}".format(**value["secretKeyRef"]) for name, value in references.items()} == {
        key.rpartition(".")[2]: value for key, value in conf.items() if ".secretKeyRef." in key
    }
    assert conf["spark.kubernetes.executor.secrets.lake-keys"] in {mount["mountPath"] for mount in container["volumeMounts"]}
    ports = {port["containerPort"] for port in container["ports"]}
    assert ports == {int(conf["spark.driver.port"]), int(conf["spark.driver.blockManager.port"])}


def test_the_containers_run_the_commands_of_the_composition() -> None:
    composition = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]
    for name, pod in pods(()).items():
        (container,) = pod["spec"]["containers"]
        assert container["args"] == composition[name]["command"]
    worker = pods(())["worker"]["spec"]["containers"][0]["readinessProbe"]["exec"]["command"]
    assert ["CMD", *worker] == composition["worker"]["healthcheck"]["test"]
    assert worker[2] in cast(Any, get_command(app)).commands


@each_release
def test_a_container_may_do_little(values: tuple[str, ...]) -> None:
    assert pods(values).keys() == {"api", "worker", "upgrade"}
    for name, pod in pods(values).items():
        spec = pod["spec"]
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        assert (spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["runAsUser"]) == (True, 10001)
        writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        assert writable == {"/tmp", "/var/lib/federator/.federator"}
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}
        # Only Spark's driver calls the API of Kubernetes.
        assert spec["automountServiceAccountToken"] is (name == "worker" and "spark.mode=kubernetes" in values)
        assert all("valueFrom" in entry for entry in container["env"])
    assert objects(values, "Secret") == {}


def test_every_selector_selects_what_it_is_for() -> None:
    values = RELEASES["kubernetes"]
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(values).items()}

    def matched(selector: Mapping[str, Any]) -> set[str]:
        return {name for name, found in labels.items() if selects(found, selector)}

    (service,) = objects(values, "Service").values()
    assert matched({"matchLabels": service["spec"]["selector"]}) == {"api"}
    for deployment in objects(values, "Deployment").values():
        assert len(matched(deployment["spec"]["selector"])) == 1
    (monitor,) = objects(values, "ServiceMonitor").values()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    budgets = [matched(budget["spec"]["selector"]) for budget in objects(values, "PodDisruptionBudget").values()]
    assert budgets == [{"api"}, {"worker"}]
    policies = [matched(policy["spec"]["podSelector"]) for policy in objects(values, "NetworkPolicy").values()]
    assert policies == [{"api"}, {"worker", "upgrade"}]


def test_only_executors_reach_a_worker() -> None:
    def ingress(values: tuple[str, ...]) -> list[Any]:
        return objects(values, "NetworkPolicy")["company-lance-federator-worker"]["spec"]["ingress"]

    assert ingress(()) == []
    (rule,) = ingress(RELEASES["kubernetes"])
    (origin,) = rule["from"]
    assert origin["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "executor"
    assert [port["port"] for port in rule["ports"]] == [7078, 7079]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("api.replica=3",), "additional properties 'replica' not allowed"),
        (("secretEnv.FEDERATOR_TOKEN=t0ken",), "FEDERATOR_TOKEN"),
        (("spark.mode=connect", SPARK), "spark.connect.url is required"),
        (("spark.mode=kubernetes", "spark.kubernetes.image=x"), "spark.staging is required"),
        (("spark.mode=kubernetes", SPARK), "spark.kubernetes.image is required"),
        (("config=[spark]\nmaster = 'local'",), "config must not have a section [spark]"),
    ],
)
def test_a_mistake_in_the_values_is_refused(values: tuple[str, ...], message: str) -> None:
    done = template(values)
    assert done.returncode != 0
    assert message in done.stderr


def test_the_values_of_the_page_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "values.yaml"
    file.write_text(textwrap.dedent(block), encoding="utf-8")
    done = helm("template", "federator", str(CHART), "--values", str(file))
    assert done.returncode == 0, done.stderr
    assert check(done.stdout).returncode == 0
    (config,) = (found for found in yaml.safe_load_all(done.stdout) if found["kind"] == "ConfigMap")
    for variable in ("FEDERATOR_INDEX", "FEDERATOR_TOKEN", "LAKE_KEY_ID", "LAKE_SECRET"):
        monkeypatch.setenv(variable, "postgresql+psycopg://federator@127.0.0.1/federator")
    settings = parse_settings(tomllib.loads(config["data"]["federator.toml"]), tmp_path / "federator.toml")
    assert settings.sources.keys() == {"lake"}


def test_its_version_is_that_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (federator.__version__, federator.__version__)
