"""What should change, and why not: pure functions over records, coverage and the ledger. No I/O, no Spark, no clock.

``rule`` (a mirror) → ``selection`` (what is taken in) → ``mapping`` (what is wanted where) → ``cells`` (what meets at a target path) →
``decide`` (one path) → ``planner`` (the whole plan: ``plan``, ``renames``, ``namespaces``, ``windows``, ``guards``).
"""
