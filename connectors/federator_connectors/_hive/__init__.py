"""What the Hive 2 and the Hive 3 connector share."""
