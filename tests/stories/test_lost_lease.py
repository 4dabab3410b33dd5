"""A command whose changes were skipped because its lease ends too soon does not end as if all were done (PostgreSQL, Hive 2.3)."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from federator.registry import get_connector
from federator.store import Index, leases
from tests.fixtures.product import MEMORY, OK, PARTIAL, Product

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(300)]


def test_an_apply_whose_changes_do_not_fit_into_the_lease_is_partial(
    postgres_index: Callable[..., Index], hive2_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = postgres_index()
    url = index.engine.url.render_as_string(hide_password=False)
    index.close()
    database, product = f"sales_{secrets.token_hex(4)}", Product(tmp_path)
    target = {"impl": "hive2", "uri": hive2_uri, "root": f"file:{tmp_path}/lake"}
    product.configure({"impl": MEMORY, "file": str(tmp_path / "origin.json")}, target)
    product.file.write_text(f'{product.file.read_text()}[index]\nurl = "{url}"\n')
    product.store("origin").add_table((database, "orders"), f"file:{tmp_path}/orders")
    plans = str(tmp_path / "plan.json")
    assert product.run("plan", "--out", plans).exit_code == OK
    connector = get_connector("hive2")
    with connector.open("there", connector.parse_settings({"uri": hive2_uri})) as catalog:
        with monkeypatch.context() as patch:
            # What is left of a lease is never more than its whole time.
            patch.setattr(leases, "CALL_DEADLINE_SECONDS", leases.LEASE_TTL_SECONDS + 1)
            done = product.run("apply", plans)
        assert (done.exit_code, "lease" in done.stdout) == (PARTIAL, True), done.output
        assert database not in catalog.list_namespaces(())
        done = product.run("apply", plans)
        assert done.exit_code == OK, done.output
        assert catalog.list_tables((database,)) == ["orders"]
