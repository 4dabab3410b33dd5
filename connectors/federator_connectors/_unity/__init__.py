"""The parts of the Unity connector, which is ``federator_connectors.unity``."""
