"""Code shared by the HTTP connectors: client, authentication, TLS settings and errors by status."""
