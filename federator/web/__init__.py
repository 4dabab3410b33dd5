"""The page: static files that the API serves."""
