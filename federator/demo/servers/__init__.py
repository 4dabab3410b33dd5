"""Catalog servers on loopback: Hive metastores 2.3, 3.1.3 and 4.0.1, and AWS Glue served by moto."""
