from __future__ import annotations

import pytest

# The suite lives in the package, where pytest would leave its assertions bare.
for part in ("base", "namespaces", "tables", "crawl", "writes"):
    pytest.register_assert_rewrite(f"federator.testing.contract.{part}")
