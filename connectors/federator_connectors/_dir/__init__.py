"""Implementation of the directory connector, ``federator_connectors.dir``."""
