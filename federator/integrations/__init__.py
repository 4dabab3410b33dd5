"""Integrations of other projects over ``federator.client``. Each module needs its project in the same environment."""
