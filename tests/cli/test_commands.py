"""Everything else that needs no Spark: options, exit codes, init, validate, doctor, runs, db."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from federator import __version__
from federator.index import runs
from tests.cli.conftest import Shell

QUIET = [
    ["tree"], ["ls"], ["show", "lake"], ["search", "x"], ["runs"], ["validate"], ["db", "check"], ["db", "upgrade"],
    ["init", "new.toml"], ["mirror", "list"], ["mirror", "show", "nightly"], ["plans", "list"], ["audit", "verify"],
]  # fmt: skip


def test_version_and_help(shell: Shell) -> None:
    assert shell.run("--version").stdout == f"federator {__version__}\n"
    assert "Commands:" in shell.run("--help").stdout
    assert shell.run().exit_code == 64


@pytest.mark.parametrize(
    "words",
    [
        ["--nope"],
        ["nope"],
        ["ls", "--nope"],
        ["show"],
        ["tree", "--depth", "x"],
        ["--output", "xml", "ls"],
        ["plans", "approve"],
    ],
)
def test_a_mistake_on_the_command_line_is_64_and_says_so(shell: Shell, words: list[str]) -> None:
    result = shell.run(*words)
    assert (result.exit_code, result.stdout) == (64, "")
    error, hint = result.stderr.splitlines()
    assert error.startswith("error: ")
    assert error[7].islower() or error[7] in "'-"
    assert hint.startswith("hint: federator")
    assert hint.endswith("--help")


def test_a_mistake_in_the_configuration_is_64(shell: Shell) -> None:
    result = shell.run("tree", "-c", str(shell.folder / "nothing.toml"))
    assert result.exit_code == 64
    assert result.stderr.endswith("nothing.toml: no such file\nhint: federator init writes one\n")
    (shell.folder / "federator.toml").write_text("[sources.x]\nimpl = 'nope'\n")
    assert shell.run("validate").exit_code == 64
    assert shell.run("crawl").exit_code == 64


def test_common_options_stand_before_or_after(filled: Shell) -> None:
    config = str(filled.folder / "federator.toml")
    before = filled.run("--config", config, "--output", "json", "ls", FEDERATOR_CONFIG="/nowhere")
    after = filled.run("ls", "-c", config, "--output", "json", FEDERATOR_CONFIG="/nowhere")
    assert before.stdout == after.stdout
    assert json.loads(after.stdout)["nodes"][0]["name"] == "copy"


def test_looking_makes_no_index(shell: Shell) -> None:
    for words in (["tree"], ["ls"], ["runs"], ["plans", "list"], ["db", "check"]):
        result = shell.run(*words)
        assert result.exit_code == 1
        assert "there is no index yet" in result.stderr
    assert shell.run("mirror", "list").exit_code == 0
    assert not (shell.folder / "federator.db").exists()


def test_names_are_checked_before_anything_starts(shell: Shell) -> None:
    for words in (
        ["crawl", "nope"],
        ["plan", "nope"],
        ["sync", "nope"],
        ["mirror", "show", "nope"],
        ["mirror", "prune", "nope"],
    ):
        result = shell.run(*words)
        assert result.exit_code == 64, words
        assert "hint: " in result.stderr


def test_an_unforeseen_error_is_one_line(filled: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("deep\nbelow")

    monkeypatch.setattr(runs, "recent", broken)
    result = filled.run("runs")
    assert result.exit_code == 1
    assert result.stderr == "error: unexpected ValueError: deep\nhint: FEDERATOR_TRACEBACK=1 shows where it happened\n"
    assert "Traceback" in filled.run("runs", FEDERATOR_TRACEBACK="1").stderr


def test_a_file_that_is_no_database(shell: Shell) -> None:
    (shell.folder / "federator.db").write_text("this is a text, and it is long enough to be looked at as a database" * 20)
    result = shell.run("tree")
    assert result.exit_code == 1
    assert "failed, it is damaged: file is not a database" in result.stderr
    assert "hint: restore a backup" in result.stderr


def test_init_writes_what_validate_accepts(shell: Shell) -> None:
    for words in (
        [],
        ["--hive3", "thrift://h:9083"],
        ["--unity", "http://u:8080", "--polaris", "http://p:8181", "--rest", "https://r"],
        ["--hive2", "thrift://h:9083", "--glue", "eu-west-1", "--dir", "a", "--dir", 'b "x"'],
    ):
        result = shell.run("init", "new.toml", "--force", "-c", "ignored.toml", *words)
        assert result.exit_code == 0, result.stderr
        assert shell.run("validate", "-c", "new.toml").exit_code == 0
    data = shell.json("validate", "-c", "new.toml")
    assert [source["name"] for source in data["sources"]] == ["files", "files_2", "hive2", "aws"]
    Path("new.toml").unlink()


def test_init_never_overwrites_and_never_writes_nonsense(shell: Shell) -> None:
    before = (shell.folder / "federator.toml").read_text()
    result = shell.run("init")
    assert result.exit_code == 64
    assert "--force" in result.stderr
    assert shell.run("init", "--force", "--hive3", "no uri").exit_code == 64
    assert (shell.folder / "federator.toml").read_text() == before


def test_validate_says_what_it_found(shell: Shell) -> None:
    printed = shell.run("validate").stdout
    assert "2 sources, 1 mirror" in printed
    data = shell.json("validate")
    assert data["mirrors"] == [{"name": "nightly", "from": "lake", "to": "copy", "schedule": None}]


def test_doctor_tells_each_thing_apart(shell: Shell) -> None:
    shell.store("lake").faults("fail:/=17")
    result = shell.run("doctor", "--output", "json")
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert result.exit_code == 3
    assert (checks["source lake"]["state"], checks["source copy"]["state"]) == ("fail", "ok")
    assert checks["index"]["state"] == "ok"
    assert "password" not in result.stdout
    shell.store("copy").faults("fail:/=17")
    assert shell.run("doctor").exit_code == 1


def test_doctor_survives_a_configuration_that_is_wrong(shell: Shell) -> None:
    (shell.folder / "federator.toml").write_text("[nope]\n")
    result = shell.run("doctor")
    assert result.exit_code == 1
    assert "unknown key" in result.stdout
    assert "python" in result.stdout


def test_db(shell: Shell) -> None:
    assert "tables created" in shell.run("db", "upgrade").stdout
    assert "up to date" in shell.run("db", "upgrade").stdout
    data = shell.json("db", "check")
    assert data["migration"] == data["before"]


def test_runs(filled: Shell) -> None:
    assert filled.run("runs").stderr == "no run yet; federator crawl makes the first\n"
    index = filled.index()
    run = runs.start(index, "crawl", actor="anna")
    counts = {"revision": 1, "state": "partial", "message": "[b]1[/b] of 3", "tables": 2, "namespaces": 3}
    runs.source_outcome(index, run, "lake", **counts)
    runs.finish(index, run, "partial", summary={"sources": 1, "tables": 2, "changes": 0, "errors": {"copy": "gone"}})
    index.close()
    assert "2 tables in 1 source, 1 error" in filled.run("runs").stdout
    detail = filled.run("runs", run.id[:14]).stdout
    assert "[b]1[/b] of 3" in detail
    assert "(0." in detail or "s ago" in detail
    assert filled.json("runs", run.id)["sources"][0]["failed"] == []
    assert filled.run("runs", "nope").exit_code == 1


def test_mirrors(filled: Shell) -> None:
    assert filled.json("mirror", "list")["mirrors"][0]["tables"] == 0
    printed = filled.run("mirror", "show", "nightly").stdout
    assert "max delete percent" in printed
    assert "nothing declared yet" in printed


@pytest.mark.parametrize("words", QUIET)
def test_commands_that_need_no_spark_do_not_load_it(filled: Shell, words: list[str]) -> None:
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: sys.stderr.write('LOADED' if 'pyspark' in sys.modules else 'CLEAN'))\n"
        "from federator.cli import main\nmain()"
    )
    ran = subprocess.run([sys.executable, "-c", code, *words], cwd=filled.folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.endswith("CLEAN")


def test_help_loads_nothing_heavy(shell: Shell) -> None:
    code = (
        "import sys\nfrom federator.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*sorted({'pyarrow', 'sqlalchemy', 'pydantic', 'rich', 'pyspark', 'alembic'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == ""


def test_a_reader_that_goes_away_is_no_error(filled: Shell) -> None:
    program = f"{sys.executable} -c 'from federator.cli import main; main()'"
    for words in ("tree", "tree --output json"):
        script = f"set -o pipefail; {program} {words} | true; echo ${{PIPESTATUS[0]}}"
        ran = subprocess.run(["bash", "-c", script], cwd=filled.folder, capture_output=True, text=True, check=False)
        assert (ran.stderr, ran.stdout) == ("", "0\n"), words


def test_a_stream_of_another_encoding_gets_escapes(filled: Shell) -> None:
    ran = filled.start("ls", "lake/odd", PYTHONIOENCODING="ascii")
    assert ran.returncode == 0, ran.stderr
    assert "\\U0001f986" in ran.stdout


def test_completion_knows_the_configured_names(shell: Shell) -> None:
    ran = shell.start(
        "mirror", "show", _FEDERATOR_COMPLETE="complete_bash", COMP_WORDS="federator mirror show ", COMP_CWORD="3"
    )
    assert ran.stdout.split() == ["nightly"]
