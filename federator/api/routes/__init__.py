"""Routes per noun."""
