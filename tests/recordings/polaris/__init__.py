"""What Apache Polaris 1.4.1 said to ``probe``."""
