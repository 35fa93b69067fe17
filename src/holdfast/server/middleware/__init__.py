"""ASGI middleware: security, admission, idempotency, connection limits."""
