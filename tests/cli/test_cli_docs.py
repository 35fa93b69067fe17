"""The example of the command line's page works in a fresh directory."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from cli_scene import command_line, environment

import warm
from holdfast.testing.model_peer import ModelPeer
from holdfast.testing.model_script import Entry, Seen, call

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def reply(seen: Seen) -> Entry:
    if seen.results:
        return f"Ordered: {seen.results[-1].content}"
    return call("apply_computer", employee="张三", model="MacBook Pro")


async def order(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An office that takes every order."""
    await reader.readuntil(b"\r\n\r\n")
    body = b'{"order_id": "C-7"}'
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
    await writer.drain()
    writer.close()


async def test_the_agent_and_its_tool_work_in_a_fresh_directory(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    agents, tools = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "agents.yaml").write_text(agents, encoding="utf-8")
    (tmp_path / "tools.yaml").write_text(tools, encoding="utf-8")
    office = await asyncio.start_server(order, "127.0.0.1", 0)
    port = office.sockets[0].getsockname()[1]
    async with ModelPeer(reply) as peer, office:
        chat = await warm.create_subprocess_exec(
            *command_line("chat", "Order a computer for 张三"),
            cwd=tmp_path,
            env={
                **environment(),
                "OFFICE_URL": f"http://127.0.0.1:{port}",
                "HOLDFAST_MODEL": "openai:scripted",
                "HOLDFAST_MODEL_BASE_URL": peer.url,
                "HOLDFAST_MODEL_API_KEY": "none",
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await chat.communicate()
    assert (chat.returncode, err.decode()) == (0, ""), out.decode()
    assert "C-7" in out.decode()
