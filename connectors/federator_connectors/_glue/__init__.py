"""The parts of the Glue connector, which is ``federator_connectors.glue``."""
