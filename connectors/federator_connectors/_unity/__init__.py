"""Implementation of the Unity connector, ``federator_connectors.unity``."""
