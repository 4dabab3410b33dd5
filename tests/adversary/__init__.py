"""The adversary: faults, races and lies against real servers. ``make adversary`` runs all of it, the test suite a short form."""
