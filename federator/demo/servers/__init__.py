"""Real catalog servers on loopback: Hive metastores 2.3 and 3.1.3, and Glue as moto serves it over HTTP."""
