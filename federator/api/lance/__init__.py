"""The official Lance REST Namespace protocol at ``/v1``, and the general spec's ``POST /<operationId>`` routes."""
