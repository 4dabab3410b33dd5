"""The Model Context Protocol (MCP): tools and resources for language models, over the routes of the API.

Only the ``mcp`` command and the first request to ``/mcp`` import the modules of this package: the official SDK takes 0.8 s.
"""
