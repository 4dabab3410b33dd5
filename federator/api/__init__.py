"""The HTTP API: routes per noun, problem errors, the token. No module here imports the pipeline."""
