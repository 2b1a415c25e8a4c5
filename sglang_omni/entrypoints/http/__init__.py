"""The HTTP application: routes, middleware and connections."""
