"""Process utilities without knowledge of catalogs: child processes, redaction, spans, streams, text."""
