"""What should change, and why not: pure functions over records, coverage and the ledger. No I/O, no Spark.

``rule`` (a mirror) → ``mapping`` (what is wanted where) → ``decide`` (one target path) → ``plan`` (order, namespaces, one name per
location) → ``guards`` (held or not).
"""
