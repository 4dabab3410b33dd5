"""A mistake has one exit code and one wording, whatever library finds it."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Shell


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["search", "--limit", "x"], "error: invalid value for '--limit': must be an integer"),
        (["datasets", "--limit", "0"], "error: invalid value for '--limit': must be at least 1"),
        (["serve", "--port", "70000"], "error: invalid value for '--port': must be at most 65535"),
        (["drift", "--kind", "nope"], "error: invalid value for '--kind': 'nope' is not one of 'location_differs'"),
    ],
)
def test_a_wrong_value_of_an_option(shell: Shell, words: list[str], message: str) -> None:
    result = shell.run(*words)
    assert result.exit_code == 64
    assert result.stderr.startswith(message)
    assert "Input should" not in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["mirror", "show", "nope"],
        ["crawl", "nope"],
        ["report", "nope"],
        ["jobs", "run", "nope"],
        ["notifications", "test", "nope"],
    ],
)
def test_a_name_that_the_configuration_lacks(shell: Shell, words: list[str]) -> None:
    shell.index().close()
    assert shell.run(*words).exit_code == 64
