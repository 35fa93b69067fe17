"""What plans are written in: conditions, templates, and the strict JSON between them."""
