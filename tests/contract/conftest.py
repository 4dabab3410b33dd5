from __future__ import annotations

import pytest

# The suite lives in the package, where pytest would leave its assertions bare.
pytest.register_assert_rewrite("federator.testing.contract")
