"""Implementation of the Iceberg REST connector, ``federator_connectors.iceberg``, and what Polaris shares with it."""
