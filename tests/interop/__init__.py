"""Other projects' clients and this project's connectors on the same catalogs: ``make interop``."""
