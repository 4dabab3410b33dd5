"""All other commands that need no Spark: options, exit codes, init, validate, doctor, runs, db."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.main import get_command

from federator import __version__, cli
from federator.cli.app import app
from federator.cli.command_modules import COMMANDS, LazyCommands, build_commands
from federator.cli.context import CommandGroup
from federator.cli.reference import list_commands
from federator.connector import StateError
from federator.store import runs
from tests.fixtures.identity_provider import run_provider
from tests.stubs.unity import UnityStub
from tests.unit.cli.conftest import Shell

QUIET = [
    ["tree"], ["ls"], ["show", "lake"], ["search", "x"], ["runs"], ["validate"], ["db", "check"], ["db", "upgrade"],
    ["init", "new.toml"], ["mirror", "list"], ["mirror", "show", "nightly"], ["plans", "list"], ["audit", "verify"],
]  # fmt: skip


def test_version_and_help(shell: Shell) -> None:
    assert shell.run("--version").stdout == f"federator {__version__}\n"
    listed = shell.run("--help", COLUMNS="80").stdout.partition("Commands:")[2]
    assert "..." not in listed
    assert "serve  " in listed
    assert max(map(len, listed.splitlines())) <= 80
    assert shell.run().exit_code == 64


@pytest.mark.parametrize("name", [name for name, command in LazyCommands().items() if isinstance(command, CommandGroup)])
def test_the_help_of_a_group_has_whole_sentences(shell: Shell, name: str) -> None:
    listed = shell.run(name, "--help", COLUMNS="80").stdout.partition("Commands:")[2]
    assert listed
    assert "..." not in listed
    assert max(map(len, listed.splitlines())) <= 80


def test_the_help_of_each_command_fits_80_columns(shell: Shell) -> None:
    for name, _ in list_commands(get_command(app), "federator"):
        for line in shell.run(*name.split()[1:], "--help", COLUMNS="80").stdout.splitlines():
            assert len(line) <= 80, name


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
    nothing = shell.folder / "nothing.toml"
    result = shell.run("tree", "-c", str(nothing))
    assert result.exit_code == 64
    assert result.stderr.endswith(f"nothing.toml: no such file\nhint: create one with federator -c {nothing} init\n")
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
    for words in (["tree"], ["ls"], ["runs"], ["plans", "list"], ["db", "check"], ["report", "inventory"]):
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

    monkeypatch.setattr(runs, "list_recent_runs", broken)
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


@pytest.mark.parametrize("command", ["tree", "db upgrade"])
def test_an_index_of_a_newer_version(shell: Shell, command: str) -> None:
    index = shell.index()
    with index.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    index.close()
    result = shell.run(*command.split())
    assert result.exit_code == 1
    assert result.stderr == ("error: the index was made by a newer version (migration 9999)\nhint: upgrade the federator\n")


def test_validate_accepts_the_file_of_init(shell: Shell) -> None:
    for words in (
        [],
        ["--hive3", "thrift://h:9083"],
        ["--unity", "http://u:8080", "--polaris", "http://p:8181", "--rest", "https://r", "--iceberg", "http://i:8181"],
        ["--hive2", "thrift://h:9083", "--glue", "eu-west-1", "--dir", "a", "--dir", 'b "x"'],
    ):
        Path("new.toml").unlink(missing_ok=True)
        result = shell.run("init", "new.toml", "-c", "ignored.toml", *words)
        assert result.exit_code == 0, result.stderr
        assert shell.run("validate", "-c", "new.toml").exit_code == 0
    data = shell.json("validate", "-c", "new.toml")
    assert [source["name"] for source in data["sources"]] == ["files", "files_2", "hive2", "aws"]
    Path("new.toml").unlink()


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


def test_doctor_warns_of_a_value_that_is_hardly_meant(shell: Shell, unity_stub: UnityStub) -> None:
    source = f'[sources.uc]\nimpl = "unity"\nendpoint = "{unity_stub.url}"\n'
    file = shell.folder / "federator.toml"
    for timeout, state in (("read_timeout = 300000", "warn"), ("read_timeout_ms = 300000", "ok")):
        file.write_text(f"{source}{timeout}\n")
        checks = {check["name"]: check for check in json.loads(shell.run("doctor", "--output", "json").stdout)["checks"]}
        assert checks["source uc"]["state"] == state
        assert ("unity.read_timeout_ms" in str(checks["source uc"]["hint"])) == (state == "warn")


def test_doctor_asks_the_identity_provider_and_warns_if_id_tokens_are_tokens_of_the_api(shell: Shell) -> None:
    with run_provider() as provider:
        oidc = f'[serve.oidc]\nissuer = "{provider.url}{{}}"\naudience = "{{}}"\n[serve.oidc.sign_in]\nclient_id = "page"\n'
        uri = 'redirect_uri = "https://federator.corp/auth/callback"\n'

        def check(issuer_end: str, audience: str, more: str = "") -> dict[str, dict[str, str]]:
            text = oidc.format(issuer_end, audience).replace("audience", f"{more}audience") + uri
            (shell.folder / "federator.toml").write_text(text)
            return {check["name"]: check for check in json.loads(shell.run("doctor", "--output", "json").stdout)["checks"]}

        for audience, state in (("page", "warn"), ("api", None)):
            checks = check("", audience)
            assert checks.get("sign-in", {}).get("state") == state
            assert checks["identity provider"]["message"] == f"{provider.url}: 1 keys"
        for end, reason in (("/", f"is of the issuer '{provider.url}', not of '{provider.url}/'"), ("/else", "HTTP Error 404")):
            wrong = check(end, "api")["identity provider"]
            assert (wrong["state"], reason in wrong["message"]) == ("fail", True), wrong
            assert "issuer" in wrong["hint"]
        document = f"{provider.url}/.well-known/openid-configuration"
        wrong = check("", "api", f'jwks_url = "{document}"\n')["identity provider"]
        assert wrong["message"] == f"{document}: the identity provider cannot be used: the response has no list of keys"
        assert "jwks_url" in wrong["hint"]
    gone = check("", "api")["identity provider"]
    assert (gone["state"], "Connection refused" in gone["message"]) == ("fail", True)


def test_doctor_names_sources_whose_tables_are_opened_anonymously(shell: Shell) -> None:
    config = shell.folder / "federator.toml"
    text = config.read_text().replace("[sources.copy]", 'root = "s3://lake"\n[sources.copy]')
    config.write_text(text)
    result = shell.run("doctor", "--output", "json")
    hints = {check.get("source"): check["hint"] for check in json.loads(result.stdout)["checks"]}
    assert "ambient_credentials = true" in hints["lake"]
    assert hints["copy"] is None
    config.write_text(text.replace('root = "s3://lake"', 'root = "s3://lake"\nambient_credentials = true'))
    assert "ambient_credentials" not in shell.run("doctor", "--output", "json").stdout


def test_a_second_connection_leaves_the_locks_of_the_first(shell: Shell) -> None:
    """Closing any descriptor of the index ends all locks of the process, and another process would then remove the index's log."""
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT count(*) FROM source').fetchone(); c.close()"
    )
    log = shell.folder / "federator.db-wal"
    with closing(shell.index()) as index, index.read() as first:
        first.exec_driver_sql("SELECT count(*) FROM source").all()
        with index.read() as second:
            second.exec_driver_sql("SELECT count(*) FROM source").all()
        assert log.exists()
        subprocess.run([sys.executable, "-c", code, str(shell.folder / "federator.db")], check=True, capture_output=True)
        assert log.exists(), "the other process took itself for the last one"


def test_doctor_checks_what_sources_vend(shell: Shell, monkeypatch: pytest.MonkeyPatch, glue_url: str) -> None:
    monkeypatch.setenv("LAKE_KEY", "AKIAFEDERATORTEST")
    keys = 'storage.access_key_id = "${LAKE_KEY}"\nstorage.secret_access_key = "${LAKE_KEY}"\n'
    sts = f'vend = "sts"\nsts.role_arn = "arn:aws:iam::123456789012:role/tables"\nsts.endpoint = "{glue_url}"\n'
    sources = {"static": 'vend = "static"\n', "temporary": sts + keys, "keyless": sts, "none": ""}
    lake = shell.folder / "lake"
    lake.mkdir(exist_ok=True)
    text = "".join(f'[sources.{name}]\nimpl = "dir"\nroot = "{lake}"\n{more}' for name, more in sources.items())
    (shell.folder / "federator.toml").write_text(text)
    checks = {check["name"]: check for check in json.loads(shell.run("doctor", "--output", "json").stdout)["checks"]}
    checks_by_name = {name: check for name, check in checks.items() if name.startswith("vending ")}
    assert {name: check["state"] for name, check in checks_by_name.items()} == {
        "vending static": "warn", "vending temporary": "ok", "vending keyless": "fail",
    }  # fmt: skip
    assert checks_by_name["vending temporary"]["message"] == "arn:aws:iam::123456789012:role/tables can be assumed"
    assert 'vend = "sts"' in checks_by_name["vending static"]["hint"]
    assert "ambient_credentials" in checks_by_name["vending keyless"]["hint"]


def test_files_are_private_and_doctor_names_those_that_are_not(shell: Shell, tmp_path: Path) -> None:
    def mode(path: Path) -> int:
        return path.stat().st_mode & 0o777

    assert shell.run("init", str(shell.folder / "new.toml")).exit_code == 0
    assert mode(shell.folder / "new.toml") == 0o600
    assert shell.run("db", "upgrade").exit_code == 0
    index = shell.folder / "federator.db"
    assert mode(index) == 0o600
    # The index of an earlier version.
    index.chmod(0o644)
    assert shell.run("tree").exit_code == 0
    assert mode(index) == 0o600
    key = tmp_path / "key"
    key.write_text("secret")
    config = shell.folder / "federator.toml"
    config.write_text(config.read_text() + f'[serve]\ntoken = "file:{key}"\n')
    for path in (key, config):
        path.chmod(0o640)
    (check,) = [
        check for check in json.loads(shell.run("doctor", "--output", "json").stdout)["checks"] if check["name"] == "files"
    ]
    assert check["state"] == "warn"
    assert all(str(path) in check["message"] for path in (key, config))
    for path in (key, config):
        path.chmod(0o600)
    assert '"files"' not in shell.run("doctor", "--output", "json").stdout


def test_doctor_survives_a_configuration_that_is_wrong(shell: Shell) -> None:
    (shell.folder / "federator.toml").write_text("[nope]\n")
    result = shell.run("doctor")
    assert result.exit_code == 64
    assert "unknown key" in result.stdout
    assert "python" in result.stdout


def test_db(shell: Shell) -> None:
    assert "tables created" in shell.run("db", "upgrade").stdout
    assert "up to date" in shell.run("db", "upgrade").stdout
    data = shell.json("db", "check")
    assert data["migration"] == data["before"]


def test_runs(filled: Shell) -> None:
    assert filled.run("runs").stderr == "no run yet; start the first with federator crawl\n"
    index = filled.index()
    run = runs.insert_run(index, "crawl", actor="anna")
    counts = {"revision": 1, "state": "partial", "message": "[b]1[/b] of 3", "tables": 2, "namespaces": 3}
    runs.record_source_result(index, run, "lake", **counts)
    failed = str(StateError("its identity is another one", hint="federator sources confirm copy"))
    runs.record_source_result(index, run, "copy", **{**counts, "message": failed})
    runs.finish_run(index, run, "partial", summary={"sources": 1, "tables": 2, "changes": 0, "errors": {"copy": "gone"}})
    index.close()
    assert "2 tables in 1 source, 1 error" in filled.run("runs").stdout
    detail = filled.run("runs", run.id[:14]).stdout
    assert "[b]1[/b] of 3" in detail
    assert "its identity is another one\n" in detail
    assert "  copy: hint: federator sources confirm copy\n" in detail
    assert "(now)" in detail or "s ago" in detail
    assert filled.json("runs", run.id)["sources"][0]["failed"] == []
    assert filled.run("runs", "nope").exit_code == 64


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


@pytest.mark.parametrize("words", [["ls"], ["show", "lake"], ["runs", "--quiet"]])
def test_a_reading_command_loads_what_it_uses(filled: Shell, words: list[str]) -> None:
    code = (
        "import sys\nfrom federator.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'alembic', 'structlog', 'stamina', 'pandas', 'pyarrow', 'lance', 'pyspark',"
        " 'federator.cli.run_commands', 'federator.cli.demo'}\n"
        "print(*sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code, *words], cwd=filled.folder, capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == ""


def test_each_command_is_registered_by_its_module() -> None:
    registered = {(name, module) for module in set(COMMANDS.values()) for name in build_commands(module)}
    assert registered == set(COMMANDS.items())
    modules = {path.stem for path in Path(cli.__file__).parent.glob("*.py") if "\ndef register(" in path.read_text()}
    assert modules == set(COMMANDS.values())


def test_help_loads_nothing_heavy(shell: Shell) -> None:
    code = (
        "import sys\nfrom federator.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*sorted({'pyarrow', 'sqlalchemy', 'pydantic', 'rich', 'pyspark', 'alembic'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == ""


def test_a_closed_output_pipe_is_no_error(filled: Shell) -> None:
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
