"""The stages of a run. ``federator.service`` calls them in order."""
