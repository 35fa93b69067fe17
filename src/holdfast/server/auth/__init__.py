"""Authentication: tokens, sessions, JWTs, principals and what each may do."""
