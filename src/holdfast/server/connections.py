"""The path by which the docs named `bounded` before the server had rooms; kept for importers."""

from holdfast.server.middleware.connections import bounded

__all__ = ["bounded"]
