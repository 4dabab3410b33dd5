"""Benchmarks: ratios measured in one run. ``python -m tests.bench [hive] [million] [revisions] [sync] [report]``."""
