"""What the connectors over HTTP share: one client, the sign-in, and what a status means."""
