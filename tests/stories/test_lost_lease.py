"""A command whose changes were skipped because its lease ends too soon does not end as if all were done (PostgreSQL, Hive 2.3)."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from federator.registry import get_connector
from federator.store import Index
from tests.fixtures.product import MEMORY, OK, PARTIAL, Product

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(300)]

_COMMAND = "from federator.cli.app import app; app()"
# What is left of a lease is never more than its whole time.
_SLOW_CALLS = f"from federator.store import leases; leases.CALL_DEADLINE_SECONDS = leases.LEASE_TTL_SECONDS + 1; {_COMMAND}"


def test_an_apply_whose_changes_do_not_fit_into_the_lease_is_partial(
    postgres_index: Callable[..., Index], hive2_uri: str, tmp_path: Path
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
    found = get_connector("hive2")
    with found.open("there", found.parse_settings({"uri": hive2_uri})) as catalog:
        done = _apply(product, plans, _SLOW_CALLS)
        assert (done.returncode, "lease" in done.stdout) == (PARTIAL, True), done
        assert database not in catalog.list_namespaces(())
        done = _apply(product, plans, _COMMAND)
        assert done.returncode == OK, done
        assert catalog.list_tables((database,)) == ["orders"]


def _apply(product: Product, plans: str, program: str) -> subprocess.CompletedProcess[str]:
    """Run ``federator apply`` in a process of its own, whose leases last as long as the product's do."""
    return subprocess.run(
        [sys.executable, "-c", program, "apply", plans],
        env={**os.environ, "FEDERATOR_CONFIG": str(product.file), "NO_COLOR": "1"},
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
