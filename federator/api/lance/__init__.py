"""The Lance REST Namespace protocol at ``/v1``, and the ``POST /<operationId>`` routes of the general spec."""

from federator.runtime.lance_models_import import defer_lance_client

defer_lance_client()
