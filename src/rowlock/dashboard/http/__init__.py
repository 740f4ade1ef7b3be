"""HTTP: requests and responses, streams, webhooks, OpenAPI and the server."""
