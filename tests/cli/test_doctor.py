"""The last line of ``doctor``: the command to run next."""

from __future__ import annotations

from tests.cli.conftest import Shell


def next_command(shell: Shell) -> str:
    last = shell.run("doctor").stderr.splitlines()[-1]
    assert last.startswith("next: federator -c ")
    return last.partition(f"{shell.folder}/federator.toml ")[2]


def test_a_new_user_is_led_from_the_file_to_the_plan(shell: Shell) -> None:
    assert next_command(shell) == "crawl"
    shell.index().close()
    assert next_command(shell) == "plan"
    file = shell.folder / "federator.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.partition("[mirrors.")[0], encoding="utf-8")
    assert next_command(shell) == "tree"
    file.write_text("nonsense", encoding="utf-8")
    assert next_command(shell) == "validate"
    file.unlink()
    assert next_command(shell) == "init"


def test_a_failed_check_comes_before_any_other_command(shell: Shell) -> None:
    shell.store("lake").faults("fail:/=17")
    assert next_command(shell).startswith("doctor, after")
