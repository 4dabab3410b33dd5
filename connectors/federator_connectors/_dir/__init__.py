"""The pieces of the connector to directories of Lance tables."""
