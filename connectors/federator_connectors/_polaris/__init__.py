"""Implementation of the Polaris connector, ``federator_connectors.polaris``."""
