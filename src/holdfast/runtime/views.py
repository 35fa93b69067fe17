"""The path by which the docs named `request_of` before; kept for importers."""

from holdfast.runtime.projections import request_of

__all__ = ["request_of"]
