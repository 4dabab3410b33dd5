"""The parts of the connector ``polaris``."""
