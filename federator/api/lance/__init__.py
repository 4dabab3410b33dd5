"""The Lance REST Namespace protocol at ``/v1``, and the ``POST /<operationId>`` routes of the general spec."""
