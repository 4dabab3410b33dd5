"""The pieces of the connector to Lance REST namespaces."""
