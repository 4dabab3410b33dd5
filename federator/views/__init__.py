"""Read models of the API and the CLI: one typed view per noun, from ``federator.store``."""
