"""Implementation of the REST connector, ``federator_connectors.rest``."""
