"""The routes of the federation's own API, one module per resource."""
