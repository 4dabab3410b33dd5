"""Decide what should change at a target, and what is refused and why. Pure functions over records, coverage and the ledger.

No I/O, no Spark, no clock. Only ``facts`` does I/O: it observes single objects through the port, and reads an index behind a
protocol.

``rule`` (a mirror) → ``selection`` (selected origins) → ``mapping`` (desired state) → ``cells`` (inputs by target path) →
``decision`` (one path) → ``planner`` (the whole plan, with ``plan``, ``renames``, ``namespaces``, ``change_windows`` and
``guards``).
"""
