"""Holdfast mounted into another application, as plain uvicorn serves it: `embedded_child.py PORT`.

Says an admin's token on the first line.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from holdfast import Holdfast

app = Holdfast.in_memory()
web = app.asgi()


@asynccontextmanager
async def lifespan(outer: FastAPI) -> AsyncIterator[None]:
    async with app:
        _, token = await web.state.services.tokens.issue("Will Zhang", roles=["admin"])
        sys.stdout.write(f"{token}\n")
        sys.stdout.flush()
        yield


if __name__ == "__main__":
    outer = FastAPI(lifespan=lifespan)
    outer.mount("/holdfast", web)
    uvicorn.run(outer, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
