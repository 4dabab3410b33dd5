"""docs/reference/cli.md equals the reference generated from the code."""

from __future__ import annotations

import re
from pathlib import Path

from typer.main import get_command

from federator.cli import reference
from federator.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_the_page_is_made_from_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference.render_reference(), (
        "generate the page again: .venv/bin/python -m federator.cli.reference > docs/reference/cli.md"
    )


def test_every_command_and_option_says_what_it_does() -> None:
    for path, command in reference.list_commands(get_command(app), "federator"):
        assert command.help, path
        for name, meaning in reference.list_options(command):
            assert meaning.strip().endswith((".", "quotes.")), f"{path} {name}: {meaning}"


def test_every_command_is_named_in_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for path, command in reference.list_commands(get_command(app), "federator"):
        assert f"# {path}\n" in page
        for name, _ in reference.list_options(command):
            assert name.split(",")[0].split(" ")[0] in page


def test_paths_in_commands_of_the_readme_survive_a_shell() -> None:
    readme = PAGE.parents[2] / "README.md"
    commands = [
        line.partition("#")[0] for line in readme.read_text(encoding="utf-8").splitlines() if line.startswith("federator ")
    ]
    assert commands
    assert not [command for command in commands if "$" in re.sub("'[^']*'", "", command)]
