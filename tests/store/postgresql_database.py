"""Databases on the server of the tests. A module of its own: several folders have a `conftest`."""

import uuid


def new_database(server: str, template: str = "template1") -> str:
    """Address of a new one, a copy of `template`."""
    import psycopg

    name = f"perf_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return server.replace("/postgres?", f"/{name}?")
