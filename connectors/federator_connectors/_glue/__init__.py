"""Implementation of the Glue connector, ``federator_connectors.glue``."""
