"""``init``: what it writes, what it refuses, and its questions on a terminal."""

from __future__ import annotations

import re
import stat
import sys
import tomllib

import pytest
from typer.testing import CliRunner

from federator.cli import first_config
from federator.cli.app import app
from federator.settings import parse_settings
from tests.unit.cli.conftest import Shell

_SETTING = re.compile(r"^# (?=[\w.-]+ = )", re.M)


def test_it_never_overwrites(shell: Shell) -> None:
    file = shell.folder / "federator.toml"
    before = file.read_bytes()
    result = shell.run("init", "--dir", "tables")
    assert result.exit_code == 64
    assert "already exists" in result.stderr
    assert file.read_bytes() == before


def test_the_file_is_readable_in_80_columns() -> None:
    text = first_config.render_config({impl: ["thrift://localhost:9083"] for impl in first_config.TEMPLATES})
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_it_does_not_follow_a_link(shell: Shell) -> None:
    (shell.folder / "link.toml").symlink_to(shell.folder / "nothing.toml")
    assert shell.run("init", str(shell.folder / "link.toml"), "--dir", "tables").exit_code == 64
    assert not (shell.folder / "nothing.toml").exists()


def test_an_invalid_address_writes_nothing(shell: Shell) -> None:
    for option, address in (("--hive3", "no uri"), ("--dir", ""), ("--glue", " "), ("--glue", "eu west")):
        result = shell.run("init", str(shell.folder / "new.toml"), option, address)
        assert result.exit_code == 64
        message, hint = result.stderr.splitlines()
        assert message.startswith(f"error: {option}: ")
        assert hint.startswith("hint: ")
    assert not (shell.folder / "new.toml").exists()


def test_a_source_that_is_given_twice_is_refused(shell: Shell) -> None:
    result = shell.run("init", str(shell.folder / "new.toml"), "--dir", "tables", "--dir", "tables")
    assert (result.exit_code, result.stderr) == (64, "error: tables is given twice\nhint: name each source once\n")


def test_only_the_owner_reads_the_file(shell: Shell) -> None:
    file = shell.folder / "new.toml"
    assert shell.run("init", str(file), "--dir", "tables").exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("impl", first_config.TEMPLATES)
def test_each_commented_setting_of_a_source_is_valid(shell: Shell, impl: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once contradict each other for some sources, so each group is tried alone."""
    template = first_config.TEMPLATES[impl]
    address = "s3://lake/tables" if impl == "dir" else template.example
    assert shell.run("init", str(shell.folder / "new.toml"), f"--{impl}", address).exit_code == 0
    text = (shell.folder / "new.toml").read_text(encoding="utf-8")
    head, _, source = text.partition(f"[sources.{template.name}]")
    source = source.partition("# [mirrors.")[0]
    for variable in re.findall(r"\$\{(\w+)\}", source):
        monkeypatch.setenv(variable, "client:a-secret-of-the-test")
    (shell.folder / "key.json").write_text("{}", encoding="utf-8")
    source = source.replace("file:/etc/federator/gcs.json", f"file:{shell.folder}/key.json")
    groups = re.findall(r"(?:^# [\w.-]+ = .*\n)+", source, re.M)
    assert len(groups) >= 3
    plain = "".join(re.findall(r"^[\w.]+ = .*\n", source, re.M))
    for group in groups:
        document = f"{head}[sources.x]\n{plain}{_SETTING.sub('', group)}"
        settings = parse_settings(tomllib.loads(document), shell.folder / "new.toml")
        assert len(settings.sources["x"].properties) + bool(settings.sources["x"].schedule) >= 1 + len(group.splitlines())


def test_only_stores_that_a_source_can_have_are_suggested() -> None:
    stores = {"storage.region": "s3", "storage.google_service_account_key": "gs", "storage.account_key": "az"}

    def suggested(impl: str, address: str) -> list[str]:
        text = first_config.render_config({impl: [address]})
        return [store for key, store in stores.items() if key in text]

    assert suggested("glue", "eu-west-1") == ["s3"]
    assert [suggested("dir", address) for address in ("s3://lake/t", "gs://lake/t", "az://lake/t", "tables")] == [
        ["s3"], ["gs"], ["az"], [],
    ]  # fmt: skip
    assert suggested("hive3", "thrift://localhost:9083") == ["s3", "gs", "az"]


def test_it_asks_on_a_terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("federator.cli.init._can_ask", lambda cli: True)
    answers = "nonsense\nhive3\nftp://m\nthrift://m:9083\ny\nglue\n   \neu-west-1\nn\n"
    file = shell.folder / "new.toml"
    result = CliRunner().invoke(app, ["init", str(file)], input=answers)
    assert result.exit_code == 0, result.output
    sources = tomllib.loads(file.read_text(encoding="utf-8"))["sources"]
    assert sources == {
        "hive": {"impl": "hive3", "hive3": {"uri": "thrift://m:9083"}}, "aws": {"impl": "glue", "glue": {"region": "eu-west-1"}},
    }  # fmt: skip
    assert "one of: dir, hive3" in result.stderr
    assert "'ftp://m' is not allowed; allowed: thrift://host:port" in result.stderr
    assert "hive3.uri" not in result.stderr
    assert "the value is empty" in result.stderr


def test_it_asks_nothing_for_a_file_that_cannot_be_written(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("federator.cli.init._can_ask", lambda cli: True)
    for file in (shell.folder / "absent" / "new.toml", shell.folder / "federator.toml" / "new.toml"):
        result = CliRunner().invoke(app, ["init", str(file)], input="dir\ntables\nn\n")
        assert (result.exit_code, result.stderr) == (
            64, f"error: {file.parent}: no such directory\nhint: name a file elsewhere: federator init FILE\n",
        )  # fmt: skip


def test_it_does_not_ask_a_script(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    result = shell.run("init", str(shell.folder / "new.toml"))
    assert result.exit_code == 0
    assert "no source was named, so the file has the directory 'tables'" in result.stderr
    assert shell.json("validate", "-c", str(shell.folder / "new.toml"))["sources"][0]["name"] == "files"
