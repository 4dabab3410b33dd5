"""Scripts that run in the environments of other projects' clients. Only ``runner`` is imported from this project."""
