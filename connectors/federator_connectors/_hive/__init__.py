"""Code shared by the connectors ``hive2`` and ``hive3``."""
