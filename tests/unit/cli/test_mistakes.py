"""A mistake has one exit code and one wording, whatever library finds it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from tests.unit.cli.conftest import Shell


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["search", "--limit", "x"], "error: invalid value for '--limit': must be an integer"),
        (["db", "prune", "--keep-days", "-1"], "error: invalid value for '--keep-days': must be at least 0\n"),
        (["datasets", "--limit", "0"], "error: invalid value for '--limit': must be at least 1"),
        (["serve", "--port", "70000"], "error: invalid value for '--port': must be at most 65535"),
        (["report"], "error: missing argument 'REPORT'\nhint: federator report [OPTIONS] REPORT; federator report --help\n"),
        (["runs", "show", "x"], "error: got unexpected extra argument(s) (x)\nhint: federator runs [OPTIONS] [RUN_ID]; "),
        (["drift", "--kind", "nope"], "error: invalid value for '--kind': 'nope' is not one of 'location_differs'"),
        (["describe", "lake/orders"], "error: no such command 'describe'. Did you mean 'show'?\nhint: federator --help\n"),
        (["shwo", "lake/orders"], "error: no such command 'shwo'. Did you mean 'show'?\n"),
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
        ["tree", "--as-of", "yesterday"],
        ["tree", "--as-of", "2099-01-01"],
        ["diff", "--from", "yesterday"],
        ["search", "colum:x"],
        ["explain", "lake"],
    ],
)
def test_a_value_that_the_index_cannot_read(shell: Shell, words: list[str]) -> None:
    shell.index().close()
    assert shell.run(*words).exit_code == 64


@pytest.mark.parametrize(
    "words",
    [
        ["mirror", "show", "nope"],
        ["crawl", "nope"],
        ["report", "nope"],
        ["jobs", "run", "nope"],
        ["notifications", "test", "nope"],
        ["plans", "list", "nope"],
        ["notifications", "retry"],
        ["audit", "list", "--kind", "nope"],
        ["reports", "--kind", "nope"],
    ],
)
def test_a_name_that_the_configuration_lacks(shell: Shell, words: list[str]) -> None:
    shell.index().close()
    assert shell.run(*words).exit_code == 64


@pytest.mark.parametrize(
    "words",
    [
        ["show", "lake/sales/nope"],
        ["ls", "lake/nope"],
        ["runs", "nope"],
        ["plans", "show", "nope"],
        ["notifications", "retry", "nope"],
        ["token", "revoke", "nope"],
        ["session", "revoke", "nope"],
    ],
)
def test_a_name_or_id_that_the_index_lacks(filled: Shell, words: list[str]) -> None:
    assert filled.run(*words).exit_code == 64


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[nope]\n",
        '[sources.x]\nimpl = "nope"\n',
        '[index]\nurl = "${NOPE}"\n',
        '[index]\nurl = "mysql://a/b"\n',
        '[index]\nurl = "a.db"\n',
    ],
)
@pytest.mark.parametrize("command", ["validate", "crawl", "doctor"])
def test_a_wrong_configuration(shell: Shell, command: str, text: str) -> None:
    (shell.folder / "federator.toml").write_text(text, encoding="utf-8")
    assert shell.run(command).exit_code == 64


def test_a_file_that_is_not_toml_is_named_with_its_folder(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.folder / "h.toml").write_text("nonsense", encoding="utf-8")
    monkeypatch.chdir(shell.folder)
    assert shell.run("-c", "h.toml", "validate").stderr.startswith(f"error: {shell.folder}/h.toml: not TOML: ")


def test_commands_in_hints_name_the_same_file(filled: Shell) -> None:
    file = filled.folder / "my lake.toml"
    (filled.folder / "federator.toml").rename(file)
    for words in (["-c", str(file), "runs", "nope"], ["runs", "nope", "-c", str(file)]):
        assert filled.run(*words).stderr.endswith(f"\nhint: federator -c '{file}' runs lists the runs\n")
    assert filled.run("runs", "-c", str(file)).stderr.endswith(f" federator -c '{file}' crawl\n")
    # A command that reads the variable needs no option.
    assert filled.run("runs", "nope", FEDERATOR_CONFIG=str(file)).stderr.endswith("\nhint: federator runs lists the runs\n")


def test_ctrl_c_while_a_command_is_imported_shows_no_traceback() -> None:
    program = """
import sys, federator.cli
class Interrupt:
    def find_spec(self, name, *_):
        if name == "federator.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
federator.cli.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ('[sources.x]\nimpl = "dir"\ndir.path = "${NOPE}"\n', "NOPE is not set\nhint: export NOPE, or write file:PATH"),
        ('[sources.x]\nimpl = "dir"\ndir.pat = "a"\n', "dir.pat: unknown key\nhint: did you mean dir.path?\n"),
        ('[mirrors.m]\nfrom = "a"\nto = "b"\nmin_miss = "2s"\n', "hint: did you mean min_miss_interval?\n"),
        ("[sources.x\n", "hint: texts have quotes, sections have brackets"),
    ],
)
def test_a_wrong_configuration_says_what_to_do(shell: Shell, section: str, message: str) -> None:
    (shell.folder / "federator.toml").write_text(section, encoding="utf-8")
    result = shell.run("validate")
    assert (result.exit_code, message in result.stderr) == (64, True), result.stderr


def test_the_hint_for_a_wrong_url_of_the_index_has_nothing_masked(shell: Shell) -> None:
    (shell.folder / "federator.toml").write_text('[index]\nurl = "federator.db"\n', encoding="utf-8")
    result = shell.run("ls")
    hint = "hint: write sqlite:///federator.db, or postgresql+psycopg://host/database\n"
    assert (result.exit_code, result.stderr) == (64, f"error: [index] url: not a database URL\n{hint}")


def test_a_job_where_nothing_has_a_schedule(shell: Shell) -> None:
    shell.index().close()
    assert shell.run("jobs", "pause", "nope").stderr == (
        "error: there is no job 'nope'\nhint: jobs: none; a schedule of a source or a mirror makes one\n"
    )


def test_a_directory_instead_of_the_configuration(shell: Shell) -> None:
    result = shell.run("-c", str(shell.folder), "ls")
    assert (result.exit_code, "cannot be read (Is a directory)\nhint: " in result.stderr) == (64, True), result.stderr


def test_a_search_in_a_source_that_does_not_exist(filled: Shell) -> None:
    assert filled.run("search", "*", "--source", "lak*").exit_code == 0
    result = filled.run("search", "*", "--source", "lakes")
    assert (result.exit_code, result.stderr) == (64, "error: no source 'lakes' is in the index\nhint: known: copy, lake\n")


def test_errors_break_between_words_on_a_terminal(filled: Shell) -> None:
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-c", "from federator.cli import main; main()", "diff", "--from", "yesterday"]
    subprocess.run(command, cwd=filled.folder, env={**os.environ, "COLUMNS": "80"}, stderr=theirs, check=False, timeout=240)
    os.close(theirs)
    text = os.read(terminal, 4096).decode()
    os.close(terminal)
    assert max(map(len, text.splitlines())) <= 80
    assert "2026-11-20T08:30:00Z" in text


@pytest.mark.parametrize("lines", ["50", "2"])
def test_notes_come_after_the_table_that_a_pager_may_show(filled: Shell, lines: str) -> None:
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-c", "from federator.cli import main; main()", "search", "*", "--limit", "1"]
    environment = {**os.environ, "COLUMNS": "80", "LINES": lines, "NO_COLOR": "1", "PAGER": "cat"}
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    subprocess.run(command, cwd=filled.folder, env=environment, check=False, timeout=240, **streams)  # type: ignore[call-overload]
    os.close(theirs)
    text = os.read(terminal, 4096).decode()
    os.close(terminal)
    assert text.splitlines()[-1] == "12 tables match; --limit 4 shows more of them.", text
    assert len(text.splitlines()) > 2


@pytest.mark.parametrize("words", [["mirror", "list"], ["mirror", "show", "nightly"], ["ls"]])
def test_an_index_of_another_version_is_not_an_empty_one(shell: Shell, words: list[str]) -> None:
    with shell.index().write() as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '0001'")
    result = shell.run(*words)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (1, "hint: federator db upgrade")


def test_a_directory_without_access(shell: Shell) -> None:
    shell.folder.chmod(0o500)
    # Modes do not bind root, unless it gives up this capability.
    bound = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override"] if os.geteuid() == 0 else []
    command = [*bound, sys.executable, "-c", "from federator.cli import main; main()", "crawl"]
    try:
        done = subprocess.run(command, cwd=shell.folder, capture_output=True, text=True, check=False, timeout=240)
    finally:
        shell.folder.chmod(0o700)
    assert done.stderr == (
        f"error: no access to {shell.folder}/.federator: Permission denied\n"
        "hint: let this user read and write there, or choose another path\n"
    )
    assert done.returncode == 1
