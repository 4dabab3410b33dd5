"""The long form of the tests of access: ``make fuzz-access``. The short form is ``tests/unit/api/test_access_hidden.py``."""
