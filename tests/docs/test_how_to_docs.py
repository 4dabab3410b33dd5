"""docs/how-to: each page is in the index, its configuration loads, its commands exist, and each alert has an entry."""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
import stat
import subprocess
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml  # type: ignore[import-untyped]
from typer.main import get_command

from federator.cli.app import app
from federator.settings import parse_settings
from tests.fixtures.availability import fail_or_skip
from tests.fixtures.index import new_index

ROOT = Path(__file__).parents[2]
DIRECTORY = ROOT / "docs" / "how-to"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted(DIRECTORY.glob("*.md"))}
#: the pages whose blocks are whole configurations; the others have tests of their own
CONFIGURATIONS = (
    "discovery", "glue-accounts", "hive-kerberos", "hive-to-unity", "lance-rest", "polaris", "replica", "two-way-mirror", "unity",
)  # fmt: skip
_BLOCK = re.compile(r"^( *)```toml\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# Typer has a copy of click, which it does not export.
_UsageError: Any = typer.BadParameter.__base__
_COMMAND = re.compile(r"`(federator(?: [^`]+)?)`|^ *(federator .*)$", re.MULTILINE)


def commands(page: str) -> list[str]:
    """The commands of a page, in sentences and in blocks, without comments and optional parts."""
    found = (" ".join((in_text or in_block).split()) for in_text, in_block in _COMMAND.findall(page))
    return [re.sub(r" \[[^\]]*\]", "", command.partition(" #")[0]) for command in found]


def parse_command(words: list[str]) -> None:
    """Raise click's UsageError for a command that does not exist, or whose arguments are wrong. Nothing is run."""
    command: Any = get_command(app)
    while words and (children := getattr(command, "commands", None)):
        if words[0] not in children:
            raise _UsageError(f"no such command {words[0]!r}")
        command, words = children[words[0]], words[1:]
    # A command that is named alone, in a sentence, has no arguments.
    if words:
        command.make_context("federator", words)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_its_configuration_loads(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [text for _, text in _BLOCK.findall(PAGES[name])]
    assert blocks
    for variable in re.findall(r"\$\{([A-Z_]+)\}", "".join(blocks)):
        monkeypatch.setenv(variable, "of-the-test:of-the-test")
    settings = parse_settings(tomllib.loads("\n".join(blocks)), tmp_path / "federator.toml")
    assert settings.sources


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "deploy" / "README.md", *sorted(DIRECTORY.glob("*.md"))], ids=str)
def test_its_commands_exist(page: Path) -> None:
    for command in commands(page.read_text(encoding="utf-8")):
        try:
            parse_command(shlex.split(command)[1:])
        except _UsageError as error:
            pytest.fail(f"{command}: {error.format_message()}")


#: pages about the federator alone
OWN = {"index", "recipes", "access", "client", "export", "history", "page", "table-access", "upgrade"}


@pytest.mark.parametrize("name", sorted(PAGES.keys() - OWN))
def test_a_page_about_other_systems_says_what_was_not_run(name: str) -> None:
    assert re.search(r"\b(?:was|were) not\s+run\b|\bnot run\b", PAGES[name], re.IGNORECASE)


def test_a_wrong_command_is_noticed() -> None:
    for wrong in ("plans aprove DIGEST", "crawl --root", "jobs pause a b"):
        with pytest.raises(_UsageError):
            parse_command(wrong.split())


def test_the_index_has_each_page() -> None:
    assert set(re.findall(r"\((\w[\w-]*)\.md\)", PAGES["index"])) == PAGES.keys() - {"index"}
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"how-to/([\w-]+)\.md", navigation)) == PAGES.keys()


@pytest.mark.parametrize("name", [*CONFIGURATIONS, "backup", "integrations", "kubernetes", "playbook", "upgrade"])
def test_a_page_says_what_was_run(name: str) -> None:
    assert "\n## What was run\n" in PAGES[name]


def test_the_backup_of_sqlite_is_private_and_complete(tmp_path: Path) -> None:
    if shutil.which("sqlite3") is None:
        fail_or_skip("sqlite3 is not installed")
    index = new_index(tmp_path)
    (block,) = (
        text for text in re.findall(r"^```\n(.*?)^```$", PAGES["backup"], re.MULTILINE | re.DOTALL) if "sqlite3" in text
    )
    subprocess.run(["/bin/sh", "-ec", f"umask 022\n{block}"], cwd=tmp_path, check=True, timeout=60)
    index.close()
    backup = tmp_path / "federator-backup.db"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    with closing(sqlite3.connect(backup)) as connection:
        assert connection.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)


def test_the_playbook_has_each_alert() -> None:
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text(encoding="utf-8"))
    alerts = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    assert re.findall(r"^## (Federator\w+)$", PAGES["playbook"], re.MULTILINE) == alerts
