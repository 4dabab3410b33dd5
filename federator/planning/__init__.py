"""What should change, and why not: pure functions over records, coverage and the ledger. No I/O, no Spark, no clock.

``facts`` alone does I/O: it observes single objects through the port, and reads an index behind a protocol.

``rule`` (a mirror) → ``selection`` (what is taken in) → ``mapping`` (what is wanted where) → ``cells`` (what meets at a target path) →
``decide`` (one path) → ``planner`` (the whole plan: ``plan``, ``renames``, ``namespaces``, ``windows``, ``guards``).
"""
