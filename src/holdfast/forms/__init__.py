"""Forms: read from plans and from tools, validated, written as JSON Schema."""
