"""The configuration: each mistake is one line with the file, the key and the allowed values."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from federator.connector import ConfigError
from federator.registry import get_connector, list_impls
from federator.settings import Settings, SourceSettings, load_settings, parse_duration, parse_settings
from federator.settings.section import section_keys

FILE = Path("/etc/federator.toml")
MEMORY = 'impl = "federator.testing:CONNECTOR"'
TWO = f'[instance]\nid = "prod"\n[sources.a]\n{MEMORY}\n[sources.b]\n{MEMORY}\n'
MIRROR = f'{TWO}[mirrors.m]\nfrom = "a"\nto = "b"\n'
HIVE = TWO.replace(MEMORY, 'impl = "hive3"\nhive3.uri = "thrift://h:9083"', 1)


def read(text: str) -> Settings:
    return parse_settings(tomllib.loads(text), FILE)


def error(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return caught.value


MISTAKES = [
    # unknown keys, at each level
    ("colour = 1", "colour: unknown key; allowed: instance, index, spark, verify, locations, schedule, serve, audit, history, reports, logs", ""),  # noqa: E501
    ("[instance]\nname = 'x'", "[instance] name: unknown key; allowed: id", ""),
    ("[index]\nuri = 'x'", "[index] uri: unknown key; allowed: url", ""),
    ("[spark]\nmasters = 'x'", "[spark] masters: unknown key; allowed: master, memory, staging, archive, class_archive, conf", ""),
    ("[verify]\nage = 1", "[verify] age: unknown key; allowed: enabled, max_age, timeout, max_tables, max_seconds", ""),
    ("[locations]\nalias = {}", "[locations] alias: unknown key; allowed: aliases", ""),
    (
        "[locations]\naliases = {'s3://a/' = 's3://b/', 's3://b/' = 's3://c/'}",
        "[locations] aliases: {'s3://a/': 's3://b/', 's3://b/': 's3://c/'} is not allowed: s3://a stands for s3://b, which overlaps",
        "",
    ),
    ("[locations]\naliases = {'lake' = 's3://b/'}", "[locations] aliases: {'lake': 's3://b/'} is not allowed: 'lake' is no", ""),
    ("[tree]\norder = []", "[tree] order: unknown key; allowed: priority, skip", ""),
    ("[history]\nkeep = 1", "[history] keep: unknown key; allowed: keep_days, keep_runs, schedule", ""),
    ("[history]\nkeep_days = 0", "[history] keep_days: 0 is not allowed: it must be greater than 0", ""),
    ("[reports.x]\nkind = 'drift'\nkinds = 'drift'", "[reports.x] kinds: unknown key; allowed: kind, schedule, formats, keep", ""),
    ("[reports.x]\nkind = 'drifts'", "[reports.x] kind: 'drifts' is not allowed: it must be 'inventory', 'drift', 'mirrors', 'fresh", ""),  # noqa: E501
    ("[serve]\nhosts = 'x'", "[serve] hosts: unknown key; allowed: host, port, token", ""),
    ("[sources.c]\nimpl = 'dir'\ndir.pth = '/x'", "[sources.c] dir.pth: unknown key", "did you mean dir.path?"),
    ("[sources.c]\nimpl = 'dir'\nschedul = '@daily'", "[sources.c] schedul: unknown key", "did you mean schedule?"),
    ("[sources.c]\nimpl = 'dir'\nglue.region = 'x'", "[sources.c] glue.region: unknown key", "allowed: allowed_bases, "),
    (MIRROR + "includ = ['x']", "[mirrors.m] includ: unknown key; allowed: from, to, include, exclude, where, only_valid, namespace, table,", ""),  # noqa: E501
    # keys of another section
    (TWO.replace("[sources.b]", "include = ['x']\n[sources.b]"), "[sources.a] include: unknown key", "include is a key of a mirror: [mirrors.NAME]"),  # noqa: E501
    (MIRROR + "root = '/x'", "[mirrors.m] root: unknown key; allowed: from, to", "root is a key of a source: [sources.NAME]"),
    (MIRROR + "hive3.uri = 'x'", "[mirrors.m] hive3: unknown key; allowed: from, to", "hive3 is a key of a source: [sources.NAME]"),
    # values
    ("instance = 3", "instance: must be a table of keys", "write [instance] above its keys"),
    ("[instance]\nid = 'a b'", "[instance] id: 'a b' is not allowed: it must have up to 64 letters, digits, - and _", ""),
    ("[spark]\nconf = 3", "[spark] conf: must be a table of keys", "write [spark.conf] above its keys"),
    ('[[serve]]\ntoken = "clear"', "serve: must be a table of keys", "write [serve] above its keys"),
    ('[notify]\nurl = "https://hooks/clear"', "[notify] url: must be a table of keys", "write [notify.NAME] above its keys"),
    ("[spark.conf]\n'spark.x' = 3", "[spark.conf] spark.x: must be a text in quotes", ""),
    ("[verify]\nmax_tables = -1", "[verify] max_tables: -1 is not allowed: it must be at least 0", ""),
    ("[serve]\nport = 70000", "[serve] port: 70000 is not allowed: it must be at most 65535", ""),
    ("sources = 3", "[sources] must contain tables, such as [sources.lake]", ""),
    ("[sources]\na = 3", "[sources] must contain tables, such as [sources.lake]", ""),
    ("[[sources]]\nimpl = 'dir'", "[sources] must contain tables, such as [sources.lake]", ""),
    ("[sources.'a b']\nimpl = 'dir'", "[sources.a b]: a name has up to 64 letters, digits, - and _", ""),
    ("[sources.c]\nroot = '/x'", "[sources.c] impl: required, and not set", "use one of dir, glue, hive"),
    ("[sources.c]\nimpl = 'oracle'", "[sources.c] impl: unknown connector: 'oracle'", "use one of dir, glue, hive"),
    ("[sources.c]\nimpl = 'federator.testing:NOTHING'", "[sources.c] impl: 'federator.testing:NOTHING' is not a connector", "a dotted path"),  # noqa: E501
    ("[sources.c]\nimpl = 'hive3'", "[sources.c] hive3.uri: required, and not set", ""),
    ("[sources.c]\nimpl = 'dir'\nroot = ['/x']", "[sources.c] root: a list is not allowed", "use a text, a number, true or false"),
    (f"[sources.c]\n{MEMORY}\nconcurrency = 0", "[sources.c] concurrency: '0' is not allowed", "allowed: a whole number from 1 up"),
    # mirrors
    (TWO + "[mirrors.m]\nto = 'b'", "[mirrors.m] from: required, and not set", ""),
    (TWO + "[mirrors.m]\nfrom = 'a'\nto = 'a'", "[mirrors.m] to: a mirror needs two different sources", ""),
    (TWO + "[mirrors.m]\nfrom = 'a'\nto = 'c'", "[mirrors.m] to: no source is called 'c'", "sources: a, b"),
    (TWO + "[mirrors.m]\nfrom = 'c'\nto = 'b'", "[mirrors.m] from: no source is called 'c'", "sources: a, b"),
    (TWO + "[mirrors.'m$n']\nfrom = 'a'\nto = 'b'", "[mirrors.m$n]: a name has up to 64 letters, digits, - and _", ""),
    (MIRROR.replace("[instance]\nid", "[verify]\n#"), "[instance] id: required with any mirror", "set a name that marks owned objects"),
    (MIRROR + "delete = 'all'", "[mirrors.m] delete: 'all' is not allowed: it must be 'never' or 'owned'", ""),
    (MIRROR + "on_conflict = 'win'", "[mirrors.m] on_conflict: 'win' is not allowed: it must be 'report', 'adopt_if_same_location' or 'source_priority'", ""),  # noqa: E501
    (MIRROR + "on_missing = 'win'", "[mirrors.m] on_missing: 'win' is not allowed: it must be 'recreate' or 'report'", ""),
    (MIRROR + "include = 'x'", "[mirrors.m] include: 'x' is not allowed: it must be a list of texts, such as [\"a$*\"]", ""),
    (MIRROR + "misses_before_delete = 0", "[mirrors.m] misses_before_delete: 0 is not allowed: it must be at least 1", ""),
    (MIRROR + "max_delete_percent = 101", "[mirrors.m] max_delete_percent: 101 is not allowed: it must be at most 100", ""),
    (MIRROR + "max_delete_percent = nan", "[mirrors.m] max_delete_percent: nan is not allowed: it must be at most 100", ""),
    (MIRROR + "transitive = 'maybe'", "[mirrors.m] transitive: 'maybe' is not allowed: it must be true or false", ""),
    (MIRROR + "namespace = '{database}'", "[mirrors.m] namespace: {database} is not a level of 'a'", "'a' has no named levels"),
    (MIRROR + "table = '{tabel}'", "[mirrors.m] table: {tabel} is not a level of 'a'", "allowed: table"),
    (MIRROR + "table = '{table'", "[mirrors.m] table: '{table' has an unmatched brace", "use placeholders such as {table}"),
    (HIVE + "[mirrors.m]\nfrom = 'a'\nto = 'b'\nnamespace = '{schema}'", "[mirrors.m] namespace: {schema} is not a level of 'a'", "allowed: catalog, database"),  # noqa: E501
    # durations and schedules
    ("[verify]\ntimeout = '5 minutes'", "[verify] timeout: '5 minutes' is not allowed: it must be a duration like 500ms, 90s, 10m, 2h, 1d", ""),  # noqa: E501
    ("[verify]\ntimeout = 0", "[verify] timeout: 0 is not allowed: it must be a duration above 0", ""),
    (MIRROR + "min_miss_interval = -1", "[mirrors.m] min_miss_interval: -1 is not allowed: it must be a duration like", ""),
    (f"[sources.c]\n{MEMORY}\ndeadline = 'inf'", "[sources.c] deadline: 'inf' is not allowed: it must be a duration like", ""),
    (f"[sources.c]\n{MEMORY}\ndeadline = inf", "[sources.c] deadline: inf is not allowed: it must be a duration like", ""),
    (f"[sources.c]\n{MEMORY}\ndeadline = true", "[sources.c] deadline: True is not allowed: it must be a duration like", ""),
    (f"[sources.c]\n{MEMORY}\nschedule = 'hourly'", "[sources.c] schedule: 'hourly' is not allowed: it must be a cron line of five fields, or @every 15m", ""),  # noqa: E501
    (f"[sources.c]\n{MEMORY}\nschedule = '61 * * * *'", "[sources.c] schedule: '61 * * * *' is not allowed: '61' is not a minute;", ""),
    (f"[sources.c]\n{MEMORY}\nschedule = '* * * * xx'", "[sources.c] schedule: '* * * * xx' is not allowed: 'xx' is not a weekday;", ""),  # noqa: E501
    (MIRROR + "include = ['re:(']", "[mirrors.m.include] 0: 're:(' is not allowed: not a regular expression: missing )", ""),
    (MIRROR + "deny_properties = ['re:*']", "[mirrors.m.deny_properties] 0: 're:*' is not allowed: not a regular expression", ""),
    (MIRROR + "where.owners = ['x']", "[mirrors.m.where] owners: unknown key; allowed: owner, location, properties", ""),
    (MIRROR + "where.owner = 'x'", "[mirrors.m.where] owner: 'x' is not allowed: it must be a list of texts", ""),
    (MIRROR + "where.properties.team = 're:['", "[mirrors.m.where.properties] team: 're:[' is not allowed: not a regular expression", ""),  # noqa: E501
    (MIRROR + "replace = [{from = 'a'}]", "[mirrors.m.replace.0] to: required, and not set", ""),
    (MIRROR + "replace = [{from = 'a', to = 'b', where = 'c'}]", "[mirrors.m.replace.0] where: unknown key; allowed: from, to, in", ""),
    (MIRROR + "replace = [{from = 'a', to = 'b', in = 'schema'}]", "[mirrors.m] replace: 'schema' is not a level of 'a'", "allowed: table"),  # noqa: E501
    (MIRROR + "replace = [{from = 'a', to = '\\1'}]", "[mirrors.m] replace: '\\\\1' does not fit 'a': invalid group reference", ""),
    (MIRROR + "location = [{from = 'x', to = 's3://b'}]", "[mirrors.m.location.0] from: 'x' is not allowed: it must be a prefix of locations", ""),  # noqa: E501
    (MIRROR + "location = [{from = 's3a://', to = 's3://c'}]", "[mirrors.m] location: 's3a://' and 's3://c' must both end in / or neither", ""),  # noqa: E501
    (MIRROR + "location = [{from = 's3://a', to = 's3://c'}, {from = 's3://b', to = 's3://c'}]", "[mirrors.m] location: two entries have the same target", ""),  # noqa: E501
    (MIRROR + "windows = ['Mon-Fri']", "[mirrors.m.windows] 0: 'Mon-Fri' is not allowed: it must be times of the week like Mon-Fri 20:00-06:00", ""),  # noqa: E501
    (MIRROR + "timezone = 'Mars/Base'", "[mirrors.m] timezone: 'Mars/Base' is not allowed: it must be a time zone like UTC", ""),
    (MIRROR + "approval = 'yes'", "[mirrors.m] approval: 'yes' is not allowed: it must be 'guarded' or 'required'", ""),
    (MIRROR + "on_conflict = 'source_priority'", '[mirrors.m] source_priority and on_conflict = "source_priority" need each other', "set e.g."),  # noqa: E501
    (MIRROR + "source_priority = ['a']", '[mirrors.m] source_priority and on_conflict = "source_priority" need each other', "set e.g."),
    (MIRROR + "on_conflict = 'source_priority'\nsource_priority = ['z']", "[mirrors.m] source_priority: no source is called 'z'", ""),
    (HIVE + "[mirrors.m]\nfrom = 'a'\nto = 'b'\nnamespace = '{database[x]}'", "[mirrors.m] namespace: {database[x]} is not a level of 'a'", ""),  # noqa: E501
    (MIRROR + "schedule = '@every 0s'", "[mirrors.m] schedule: '@every 0s' is not allowed: @every needs a second or more", ""),
    (MIRROR + "schedule = '@every soon'", "[mirrors.m] schedule: '@every soon' is not allowed: it must be a duration like", ""),
    # the environment
    ("[sources.c]\nimpl = 'dir'\ndir.root = '${NOT_SET}'", "[sources.c] dir.root: the environment variable NOT_SET is not set", ""),
    ("[index]\nurl = '${NOT_SET}'", "[index] url: the environment variable NOT_SET is not set", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "hint"), MISTAKES, ids=[line[:70] for _, line, _ in MISTAKES])
def test_a_mistake_is_one_line_with_its_key_and_the_allowed_values(text: str, line: str, hint: str) -> None:
    found = error(text)
    assert found.message.startswith(f"{FILE}: {line}")
    assert "\n" not in found.message
    assert (found.hint or "").startswith(hint)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (
            "[sources.c]\nimpl = 'dir'\nroot = '/x'\nstorage.secret_access_key = 'hunter2'",
            "[sources.c] storage.secret_access_key",
        ),
        ("[sources.c]\nimpl = 'glue'\nglue.secret_access_key = 'hunter2'", "[sources.c] glue.secret_access_key"),
        ("[index]\nurl = 'postgresql+psycopg://me:hunter2@host/db'", "[index] url"),
        ("[serve]\ntoken = 'hunter2'", "[serve] token"),
    ],
)
def test_a_secret_in_clear_is_refused_and_not_repeated(text: str, where: str) -> None:
    found = error(text)
    assert found.message == f"{FILE}: {where}: a secret must not stand in the file"
    assert "${VARIABLE}" in (found.hint or "")
    assert "hunter2" not in str(found)


def test_a_secret_of_the_wrong_type_is_not_repeated() -> None:
    assert "8675309" not in str(error("[serve]\ntoken = 8675309"))


@pytest.mark.parametrize(
    "url", ["sqlite:///x.db", "postgresql+psycopg://me@host/db", "postgresql+psycopg://me:${PG_PASSWORD}@host:5432/db"]
)
def test_a_database_without_a_password_in_clear_is_taken(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_PASSWORD", "hunter2")
    settings = read(f"[index]\nurl = '{url}'")
    assert settings.index.url == url


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[sources", "not TOML"),
        (b"[sources.x]\n[sources.x]\n", "not TOML: Cannot declare sources.x twice"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (None, "no such file"),
    ],
    ids=["TOML", "twice", "bytes", "none"],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "federator.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_settings(file)
    assert caught.value.message.startswith(f"{file}: {message}")


@pytest.mark.parametrize(("text", "length"), [("500ms", 0.5), ("90s", 90), ("10m", 600), ("2h", 7200), ("1d", 86400), ("1.5h", 5400), (7, 7), (0.5, 0.5), ("0s", 0)])  # fmt: skip  # noqa: E501
def test_durations(text: object, length: float) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize(
    "text", ["", "10", "m", "10 m", "-1s", "1e3s", "10min", "１s", None, [], -1, float("nan"), float("inf"), True]
)
def test_invalid_durations(text: object) -> None:
    with pytest.raises(ValueError, match="must be a duration like"):
        parse_duration(text)


@pytest.mark.parametrize("schedule", ["*/15 * * * *", "0 4 1 jan mon-fri", "5,35 0-6/2 * * 7", "@every 15m", "@every 90s"])
def test_schedules(schedule: str) -> None:
    settings = read(f"[sources.c]\n{MEMORY}\nschedule = '{schedule}'\n")
    assert settings.sources["c"].schedule == schedule


class TestKeysOfASource:
    """The model of a source declares the federator's keys; only other keys belong to the connector."""

    @pytest.mark.parametrize("key", section_keys(SourceSettings))
    def test_a_declared_key_never_reaches_the_connector(self, key: str) -> None:
        # No key takes a table with this entry, and no section a number. A connector would report "unknown key".
        value = 1 if key == "sts" else {"no-such-key": 1}
        source = {"impl": "federator.testing:CONNECTOR", key: value}
        with pytest.raises(ConfigError) as caught:
            parse_settings({"sources": {"c": source}}, FILE)
        assert caught.value.message.startswith(f"{FILE}: [sources.c] {key}: ")
        assert "unknown key" not in caught.value.message

    @pytest.mark.parametrize("impl", list_impls())
    def test_no_connector_has_an_option_of_that_name(self, impl: str) -> None:
        options = {field.metadata["key"] for field in fields(get_connector(impl).settings_type)}
        assert options & set(SourceSettings.model_fields) == set()

    @pytest.mark.parametrize("key", sorted({*SourceSettings.model_fields} - {*section_keys(SourceSettings)}))
    def test_what_the_loader_fills_in_is_not_a_key(self, key: str) -> None:
        assert "unknown key" in error(f"[sources.c]\n{MEMORY}\n{key} = 'x'").message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("indx = {}", "did you mean index?"),
        ("path = '/x'", None),
        (MIRROR + "includ = ['x']", "did you mean include?"),
        (MIRROR + "where.owners = ['x']", "did you mean owner?"),
        (MIRROR + "colour = 1", None),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest_one(text: str, hint: str | None) -> None:
    assert error(text).hint == hint


class TestWhatIsRead:
    def test_a_mirror_becomes_a_rule(self) -> None:
        rule = read(MIRROR + "include = ['x$*']\nmin_miss_interval = '1h'\nguard_window = '2d'\n").mirror_rule("m")
        assert (rule.name, rule.origin, rule.target, rule.include) == ("m", "a", "b", ("x$*",))
        assert (rule.min_miss_interval, rule.guard_window) == (3600.0, 172800.0)

    def test_the_safe_policies_are_the_defaults(self) -> None:
        rule = read(MIRROR).mirror_rule("m")
        assert (rule.delete, rule.on_conflict, rule.on_missing) == ("owned", "report", "report")
        assert (rule.misses_before_delete, rule.min_miss_interval) == (2, 600.0)
        assert (rule.max_delete_percent, rule.max_changes, rule.guard_window) == (20.0, 10_000, 86_400.0)
        assert not any((rule.transitive, rule.declare_missing, rule.prune_unselected))

    def test_keys_of_a_source_may_be_nested_or_dotted(self) -> None:
        dotted = read(
            "[sources.c]\nimpl = 'hive3'\nhive3.uri = 'thrift://h:1'\nhive3.client.pool-size = 3\nhive3.storage.region = 'eu'\n"
        )
        nested = read(
            "[sources.c]\nimpl = 'hive3'\n[sources.c.hive3]\nuri = 'thrift://h:1'\n"
            "[sources.c.hive3.client]\npool-size = 3\n[sources.c.hive3.storage]\nregion = 'eu'\n"
        )
        expected = {"hive3.uri": "thrift://h:1", "hive3.client.pool-size": "3", "hive3.storage.region": "eu"}
        assert dotted.sources["c"].properties == nested.sources["c"].properties == expected

    def test_relative_directories_count_from_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "conf" / "federator.toml"
        file.parent.mkdir()
        file.write_text("[sources.c]\nimpl = 'dir'\ndir.path = 'tables'\n[sources.d]\nimpl = 'dir'\nroot = 's3://b/x'\n")
        settings = load_settings(file)
        assert settings.sources["c"].properties == {"dir.path": str(file.parent / "tables")}
        assert settings.sources["d"].properties == {"root": "s3://b/x"}
        assert settings.state_dir == file.parent / ".federator"

    def test_an_unknown_source_or_mirror_is_answered_with_the_known_ones(self) -> None:
        settings = read(MIRROR)
        with pytest.raises(ConfigError) as caught:
            settings.source("x")
        assert "sources: a, b" in str(caught.value)
        with pytest.raises(ConfigError) as caught:
            settings.mirror_rule("x")
        assert "mirrors: m" in str(caught.value)


class TestDigests:
    """What binds proofs and plans to the configuration."""

    SOURCE = "[sources.c]\nimpl = 'dir'\ndir.root = '${LAKE}'\nstorage.region = 'eu'\nstorage.secret_access_key = '${KEY}'\n"

    def digest(self, text: str = SOURCE) -> str:
        return read(text).sources["c"].digest

    def test_a_source_changes_with_what_its_variables_stand_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KEY", "one")
        monkeypatch.setenv("LAKE", "/one")
        before = self.digest()
        assert self.digest(self.SOURCE.replace("'eu'", "'us'")) != before
        assert self.digest(self.SOURCE + "schedule = '@every 1h'\ndeadline = '5m'\n") == before
        monkeypatch.setenv("KEY", "two")
        assert self.digest() == before
        monkeypatch.setenv("LAKE", "/two")
        assert self.digest() != before

    def test_a_mirrors_mapping_does_not_change_with_its_thresholds(self) -> None:
        plain, careful, narrow = (
            read(MIRROR + more).mirror_rule("m") for more in ("", "max_changes = 5\n", "include = ['x']\n")
        )
        assert plain.mapping_digest == careful.mapping_digest != narrow.mapping_digest
        assert len({plain.digest, careful.digest, narrow.digest}) == 3
