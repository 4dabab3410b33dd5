"""A ring and a chain of three mirrors over catalogs with different case rules: Hive and Glue fold names, a directory does not."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

from federator.demo.servers import hive
from federator.model import NamespaceRecord, TableRecord
from federator.registry import open_catalog
from federator.service import Federator
from federator.settings import load_settings
from federator.stages.result import RunResult
from tests.adversary.clients import GlueClient, HiveClient
from tests.adversary.deployment import real_servers
from tests.adversary.table import Cell
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore

#: mirrors of each form, from and to
FORMS = {
    "ring": (("lake", "files"), ("files", "aws"), ("aws", "lake")),
    "chain": (("lake", "files"), ("files", "aws")),
}
_ROUNDS = 8


class Circle:
    """Three catalogs, with one database each, and the mirrors of one form between them."""

    def __init__(self, form: str, metastore: Metastore, account: GlueAccount, directory: Path) -> None:
        self.directory, self.metastore = directory, metastore
        self.database = f"ring_{secrets.token_hex(3)}"
        (files := directory / "files").mkdir(parents=True)
        self.files = files
        self.lake, self.aws = HiveClient(metastore, self.database), GlueClient(account, self.database)
        impl, above = ("hive3", "hive$") if metastore.levels == 2 else ("hive2", "")
        databases = {"lake": f"{above}{self.database}", "files": self.database, "aws": self.database}
        lines = [
            f'[instance]\nid = "ring"\n[spark]\nmaster = "local[2,4]"\n[verify]\nenabled = false\n[sources.lake]\nimpl = "{impl}"'
        ]
        lines += [f'{impl}.{key} = "{value}"' for key, value in metastore.properties.items()]
        lines.append(
            f'[sources.files]\nimpl = "dir"\ndir.path = "{files}"\ndir.manifest_enabled = "true"\n[sources.aws]\nimpl = "glue"'
        )
        for key, value in account.properties.items():
            if key in ("access_key_id", "secret_access_key", "session_token"):
                (secret := directory / key).write_text(value, encoding="utf-8")
                value = f"file:{secret}"
            lines.append(f'glue.{key} = "{value}"')
        for origin, target in FORMS[form]:
            lines.append(f'[mirrors.{origin}-{target}]\nfrom = "{origin}"\nto = "{target}"\nnamespace = "{databases[target]}"')
            lines.append(
                f'include = ["*{self.database}$*"]\ntransitive = true\nmax_delete_percent = 100\nmin_miss_interval = "0s"'
            )
            lines += ["declare_missing = true"] if target == "files" else []
        config = directory / "federator.toml"
        config.write_text("\n".join([*lines, ""]), encoding="utf-8")
        self.federator = Federator.open(load_settings(config))

    def declare_files(self, *names: str) -> None:
        with open_catalog(self.federator.settings.source("files").spec) as catalog:
            catalog.create_namespace(NamespaceRecord("people", (self.database,)))
            for name in names:
                catalog.declare_table(TableRecord("people", (self.database, name)))

    def location(self, name: str) -> str:
        """Below the directory, which takes no other; eight hexadecimal digits at the start make it no table of its own."""
        return f"{self.files}/0badcafe_data/{name}"

    def rest(self) -> RunResult:
        """Sync until a sync plans nothing and waits for nothing. Raises AssertionError where that never comes."""
        for _ in range(_ROUNDS):
            result = self.federator.sync()
            waiting = [
                refusal
                for plan in result.plans
                for refusal in plan.refusals
                if refusal.reason.value in ("misses", "not_covered")
            ]
            if result.state == "ok" and not waiting and not any(plan.changes for plan in result.plans):
                return result
        raise AssertionError(f"no fixed point: {result.state} {result.errors} {[plan.changes for plan in result.plans]}")

    def names(self) -> dict[str, set[str]]:
        with open_catalog(self.federator.settings.source("files").spec) as catalog:
            there = set(catalog.list_tables((self.database,)))
        return {"lake": set(self.lake.tables()), "files": there, "aws": set(self.aws.tables())}


def run_circle(form: str, metastore: Metastore, account: GlueAccount, directory: Path) -> list[str]:
    """Declare, come to rest, drop, come to rest. Return what is wrong."""
    circle = Circle(form, metastore, account, directory)
    try:
        for client, name in ((circle.lake, "h1"), (circle.lake, "h2"), (circle.aws, "g1")):
            if name in ("h1", "g1"):
                client.create_database()
            client.create(name, circle.location(name))
        circle.declare_files("Mixed", "Orders", "orders")
        result, around = circle.rest(), form == "ring"
        clashes = {
            r.reason.value for plan in result.plans for r in plan.refusals if (r.origin_path or "").lower().endswith("$orders")
        }
        wrong = [] if "case_fold_clash" in clashes else [f"Orders and orders are refused for {clashes or 'nothing'}"]
        expected = {
            "lake": {"h1", "h2", *({"g1", "mixed"} if around else ())},
            "files": {"h1", "h2", "Mixed", "Orders", "orders", *({"g1"} if around else ())}, "aws": {"h1", "h2", "g1", "mixed"},
        }  # fmt: skip
        wrong += _difference("declared", circle.names(), expected)
        circle.lake.drop("h1")
        values = {r.reason.value for plan in circle.rest().plans for r in plan.refusals if r.origin_path.endswith("$h1")}
        # A directory keeps no ownership marker, so the copy there stays: in the ring it comes back to the lake.
        if not around:
            expected["lake"] = {"h2"}
            wrong += [] if values == {"needs_adoption"} else [f"the copy of h1 is refused for {values or 'nothing'}"]
        wrong += _difference("dropped", circle.names(), expected)
        return wrong + ([] if circle.federator.sync().change_count == 0 else ["a sync after the last one changes something"])
    finally:
        circle.federator.index.close()


def _difference(when: str, observed: dict[str, set[str]], expected: dict[str, set[str]]) -> list[str]:
    return [
        f"{when}: {source} has {sorted(observed[source])}, not {sorted(names)}"
        for source, names in expected.items()
        if observed[source] != names
    ]


def run(directory: Path) -> list[Cell]:
    cells = []
    for version in (hive.HIVE2, hive.HIVE3):
        (own := directory / version).mkdir()
        with real_servers(own, version) as (metastore, account):
            for form in FORMS:
                wrong = run_circle(form, metastore, account, own / form)
                sys.stderr.write("".join(f"rings: {form}: {line}\n" for line in wrong))
                expected = "fixed point, case clash refused"
                cells.append(Cell("rings", f"{form}, hive {version}, dir, glue", f"{len(wrong)} wrong", expected, not wrong))
    return cells
