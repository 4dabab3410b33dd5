"""The long form of the tests of access: ``make fuzz-access``. The short form is ``tests/api/test_access_hidden.py``."""
