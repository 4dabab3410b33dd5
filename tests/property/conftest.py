from __future__ import annotations

from hypothesis import settings

# The machines of a test run are shared, so that the time of one example says nothing.
settings.register_profile("federator", deadline=None)
settings.load_profile("federator")
