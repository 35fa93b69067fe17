"""A canary is typed into secret fields, and looked for everywhere: only the tools may have it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import pytest
from plan_texts import end, load, start, step
from pydantic import Field
from session_scenes import PATIENCE, asked, ended, over_the_wire

from holdfast import ConversationEngine, Holdfast, PlanInstance, SubTask
from holdfast.errors import AlreadyAnswered, InvalidAnswer, OperatorError, PermanentError, TooLate
from holdfast.forms.secrets import is_reference
from holdfast.journal.port import Attached
from holdfast.journal.vault import KEY_FILE, KEY_VARIABLE, Vault
from holdfast.model.interaction import InteractionAction, InteractionResponse, Resolution
from holdfast.model.rows import request_of
from holdfast.runtime.audit import request_digest
from holdfast.runtime.identity import Identity, acting
from holdfast.testing.clock import ManualClock
from holdfast.testing.model_peer import ModelPeer
from holdfast.testing.model_script import call
from holdfast.testing.scripted_model import ScriptedModel
from stores import rows_of

CANARY = 'Kanarienvogel+/"é 7f3c9Q'
SPELLINGS = (
    CANARY,
    json.dumps(CANARY)[1:-1],
    json.dumps(CANARY, ensure_ascii=False)[1:-1],
    quote(CANARY),
    quote(CANARY, safe=""),
    base64.b64encode(CANARY.encode()).decode().rstrip("="),
    "Kanarienvogel",
)
Password = Annotated[str, Field(json_schema_extra={"format": "password"})]

log = logging.getLogger("office")


class Broken(BaseException):
    """What no `except Exception` catches."""


class Login:
    """Receives a password and babbles about it in every way a tool has."""

    def __init__(self, *outcomes: str) -> None:
        self.received: list[str] = []
        self._outcomes = list(outcomes)

    async def login(self, user: str, password: Password) -> dict[str, Any]:
        """Log somebody in."""
        self.received.append(password)
        log.warning("%s logs in with %s", user, password)
        outcome = self._outcomes.pop(0) if self._outcomes else "echo"
        try:
            return self._babble(outcome, password)
        except Exception:
            log.exception("that was %r", password)
            raise

    def _babble(self, outcome: str, password: str) -> dict[str, Any]:
        if outcome == "raise":
            try:
                raise ValueError(password)
            except ValueError as cause:
                raise KeyError(password) from cause
        if outcome == "break":
            raise Broken(f"broken by {password}")
        if outcome == "refuse":
            raise PermanentError("x" * 1_990 + password)
        if outcome == "fail":
            return {"success": False, "error": f"{password} is wrong", "tried": [password]}
        return {"token": password, password: quote(password, safe=""), "json": json.dumps(password)}


def nowhere(home: Path, *elsewhere: str) -> None:
    """Neither in what is kept of the home nor in these texts, however it is spelled."""
    texts = [path.read_bytes() for path in home.iterdir() if path.is_file()] + rows_of(home)
    texts += [one.encode() for one in elsewhere]
    assert texts
    for spelled in SPELLINGS:
        assert not [one for one in texts if spelled.encode() in one], spelled


async def question_of(app: Holdfast, instance: PlanInstance) -> str:
    assert await instance.wait_until_settled(PATIENCE) == "pause"
    [row] = await app.inbox()
    return row.question_id


def office(home: Path, *outcomes: str, **options: Any) -> tuple[Holdfast, Login]:
    app, login = Holdfast(home, **options), Login(*outcomes)
    app.tool(login.login)
    return app, login


ASKS_TWICE = (
    step("L001", "001", "002", form={"pin": {"type": "secret"}}, context={"pin": "{{result.pin}}"}),
    step("L002", "002", "003", title="Ready?"),
    step(
        "L003",
        "003",
        "004",
        tool="login",
        args={"user": "Will Zhang", "password": "{002.context.pin}"},
    ),
    end("004"),
)
QUICK = {"attempts": 5, "initial": 0.001, "maximum": 0.001}


async def up_to_the_second(app: Holdfast) -> tuple[PlanInstance, str]:
    """The secret is given; the second question stands before the call."""
    load(app, *ASKS_TWICE)
    instance = await start(app)
    await app.answer(await question_of(app, instance), data={"pin": CANARY})
    return instance, await question_of(app, instance)


class TestCanary:
    async def test_in_a_plan(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        app, login = office(tmp_path, "raise", "fail")
        asking = step("L001", "001", "002", tool="login", args={"user": "Will Zhang"})
        asking |= {"retry": QUICK}
        asking["success_output"]["context"] = {"all": "{{result}}", "token": "{{result.token}}"}
        again = step(
            "L002",
            "002",
            "003",
            tool="login",
            args={"user": "Will Zhang", "password": "{002.context.token}"},
        )
        async with app:
            load(app, asking, again, end("003"), plan_id="p")
            instance = await start(app)
            question = await question_of(app, instance)
            await app.answer(question, data={"password": CANARY})
            assert await instance.wait_for_completion(PATIENCE) == "done"
            told = json.dumps([record.payload for record in await app.journal.read(instance.id)])
            nowhere(tmp_path, told, caplog.text, str(instance.context))
        assert login.received == [CANARY] * 4, "also where the first call's result is passed on"
        nowhere(tmp_path, caplog.text)
        assert "Will Zhang logs in with secret:" in caplog.text
        assert "secret:" in told

    @pytest.mark.parametrize("outcome", ["break", "refuse"])
    async def test_in_what_a_plan_fails_with(
        self, tmp_path: Path, outcome: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        app, _ = office(tmp_path, outcome)
        async with app:
            instance, ready = await up_to_the_second(app)
            await app.answer(ready, option_id="confirm")
            assert await instance.wait_for_completion(PATIENCE) == "error"
            nowhere(tmp_path, caplog.text, json.dumps(instance.context))
        assert "x" * 1_900 in str(instance.context) or "broken by secret:" in str(instance.context)

    async def test_in_a_chat_over_the_wire(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        script = [call("login", user="Will Zhang"), call("login", user="Will Zhang"), "Done."]
        async with ModelPeer(script) as peer:
            app, login = office(tmp_path, "echo", "raise", model=over_the_wire(peer.url))
            app.agent("clerk", tools=["login"])
            async with app:
                session = await app.sessions.open("clerk")
                await app.sessions.say(session.id, "Log Will in")
                for _ in range(2):
                    [question] = await asked(app, session.id)
                    await app.answer(question.request_id, data={"password": CANARY})
                assert await ended(session) == "done"
                stream = [str(one) async for one in app.sessions.subscribe(session.id)]
                prompts = json.dumps([one.body for one in peer.requests], ensure_ascii=False)
                nowhere(tmp_path, *stream, prompts, caplog.text)
        assert login.received[:2] == [CANARY] * 2
        offered = peer.requests[0].body["tools"][0]["function"]["parameters"]
        assert offered["required"] == ["user"], "no model is expected to know a secret"
        assert "Leave it out" in offered["properties"]["password"]["description"]
        assert '\\"token\\":\\"secret:' in prompts.replace(" ", "")

    async def test_with_a_scripted_model_that_passes_the_reference_on(self, tmp_path: Path) -> None:
        def script(seen: Any) -> Any:
            if seen.results and len(login.received) == 1:
                token = seen.results[0].content["token"]
                return call("login", user="again", password=token)
            return "Done." if seen.results else call("login", user="Will Zhang")

        app, login = office(tmp_path, model=ScriptedModel(script))
        app.agent("clerk", tools=["login"])
        async with app:
            session = await app.sessions.open("clerk")
            await app.sessions.say(session.id, "Log Will in")
            [question] = await asked(app, session.id)
            await app.answer(question.request_id, data={"password": CANARY})
            assert await ended(session) == "done"
            nowhere(tmp_path)
        assert login.received == [CANARY, CANARY]

    async def test_in_an_http_tool(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        targets: list[str] = []

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            targets.append(head.split()[1])
            words = json.dumps({"error": "y" * 290 + CANARY, "target": targets[-1]}).encode()
            writer.write(b"HTTP/1.1 400 No\r\nContent-Length: %d\r\n\r\n" % len(words) + words)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        file = tmp_path / "tools.yaml"
        file.write_text(
            f"tools: [{{name: login, method: GET, endpoint: 'http://127.0.0.1:{port}/in', "
            "parameters: {type: object, required: [password], "
            "properties: {user: {type: string}, password: {type: string, writeOnly: true}}}}]"
        )
        app = Holdfast(tmp_path)
        app.load_tools(file)
        async with server, app:
            instance, ready = await up_to_the_second(app)
            await app.answer(ready, option_id="confirm")
            assert await instance.wait_for_completion(PATIENCE) == "error"
            nowhere(tmp_path, caplog.text, json.dumps(instance.context))
        assert "Kanarienvogel" in targets[0]
        assert "HTTP Request: GET" in caplog.text

    async def test_in_snippets_and_checks(self, tmp_path: Path) -> None:
        app, login = office(tmp_path)
        looked: list[str] = []

        @app.tool
        async def query_login(password: str) -> dict[str, Any]:
            looked.append(password)
            return {"success": True, "said": password}

        code = (
            "pin = context['001']['pin']\n"
            "result = {'pin': pin, 'back': login(user='W', password=pin)}"
        )
        async with app:
            load(
                app,
                step(
                    "L001",
                    "001",
                    "001",
                    code_snippet=code,
                    functions=["login"],
                    context={"r": "{{result}}"},
                ),
                inputs={"pin": {"type": "secret"}},
                verify=[{"tool": "query_login", "args": {"password": "{001.context.pin}"}}],
            )
            instance = await start(app, pin=CANARY)
            assert await instance.wait_for_completion(PATIENCE) == "done"
            result = instance.context["values"]["r"]
            assert is_reference(result["pin"])
            assert result["back"]["token"] == result["pin"]
            nowhere(tmp_path)
        assert (login.received, looked) == ([CANARY], [CANARY])

    async def test_in_a_conversation(self, tmp_path: Path) -> None:
        received: list[Any] = []

        def greet(task: SubTask, results: Mapping[str, Any]) -> str:
            received.append(results["in"]["token"])
            return f"hello {results['in']['token']}"

        class Coach:
            async def decompose_goal(self, text: str) -> Any:
                return [
                    {"id": "in", "type": "login", "args": {"user": "Will Zhang"}},
                    {"id": "greet", "type": "greet", "dependencies": ["in"]},
                ]

        app, login = office(tmp_path)
        async with app:
            engine = ConversationEngine(None, Coach(), app=app, executors={"greet": greet})
            told = []
            async for event in engine.run("Log in"):
                told.append(str(event))
                if event.event_type == "interaction":
                    [row] = await app.inbox()
                    await app.answer(row.question_id, data={"password": CANARY})
            nowhere(tmp_path, *told, json.dumps(engine.create_snapshot()))
        assert (login.received, received) == ([CANARY], [CANARY])


class TestAnswers:
    async def test_the_same_secret_again_is_the_same_answer(self, tmp_path: Path) -> None:
        app, _ = office(tmp_path)
        async with app:
            load(app, *ASKS_TWICE)
            instance = await start(app)
            question = await question_of(app, instance)
            first = await app.answer(question, data={"pin": CANARY})
            again = await app.answer(question, data={"pin": CANARY})
            assert again.id == first.id
            with pytest.raises(AlreadyAnswered):
                await app.answer(question, data={"pin": "another"})

    async def test_a_plan_is_continued_with_a_secret_and_again_with_the_same(self) -> None:
        app = Holdfast.in_memory()
        async with app:
            load(app, step("L001", "001", "001", form={"pin": {"type": "secret"}}))
            instance = await start(app)
            await question_of(app, instance)
            planner = app.planner_agent
            bad = await planner.continue_plan(instance.id, {"pin": ""})
            assert bad["fields"] == {"pin": "this is required: please fill it in"}
            done = await planner.continue_plan(instance.id, {"pin": CANARY})
            assert done["success"]
            assert (await planner.continue_plan(instance.id, {"pin": CANARY}))["success"]
            other = await planner.continue_plan(instance.id, {"pin": "another"})
            assert "already answered" in other["error"]

    async def test_what_does_not_fit_is_refused_before_anything_is_sealed(self) -> None:
        rules = {"type": "secret", "validation": {"pattern": "^[0-9]+$", "max_length": 6}}
        app = Holdfast.in_memory()
        async with app:
            load(app, step("L001", "001", "001", form={"pin": rules}))
            instance = await start(app)
            question = await question_of(app, instance)
            for wrong in ("hunter2", "1234567", ["1234"], f"secret:{'0' * 32}"):
                with pytest.raises(InvalidAnswer) as refused:
                    await app.answer(question, data={"pin": wrong})
                assert list(refused.value.fields) == ["pin"]
                assert "hunter2" not in str(refused.value.fields)
            await app.answer(question, data={"pin": "1234"})
            assert await instance.wait_for_completion(PATIENCE) == "done"

    async def test_a_handler_sees_references_and_what_it_makes_up_is_sealed(self) -> None:
        app = Holdfast.in_memory()
        seen: list[Any] = []

        @app.interactions.action("decide")
        def decide(request: Any, response: InteractionResponse) -> Resolution:
            seen.append(dict(response.data))
            return Resolution(InteractionAction.PROVIDE_INFO, {"pin": CANARY})

        async with app:
            options = [{"option_id": "decide", "label": "Decide", "action": "CUSTOM"}]
            asking = step("L001", "001", "001", form={"pin": {"type": "secret"}}, options=options)
            asking["success_output"]["context"] = {"pin": "{{result.pin}}"}
            load(app, asking)
            instance = await start(app)
            question = await question_of(app, instance)
            await app.answer(question, option_id="decide", data={"pin": CANARY})
            assert await instance.wait_for_completion(PATIENCE) == "done"
            assert instance.context["values"]["pin"] == seen[0]["pin"]
            assert is_reference(seen[0]["pin"])


class TestStarts:
    async def test_a_prompt_for_several_plans_carries_a_secret_to_the_chosen_one(
        self, tmp_path: Path
    ) -> None:
        app, login = office(tmp_path)
        args = {"user": "Will Zhang", "password": "{001.context.pin}"}
        async with app:
            for plan_id in ("one", "two"):
                load(
                    app,
                    step("L001", "001", "001", tool="login", args=args),
                    plan_id=plan_id,
                    inputs={"pin": {"type": "secret"}},
                )
            instance = await app.plans.start_plan_by_prompt("go", values={"pin": CANARY})
            await app.answer(await question_of(app, instance), option_id="two")
            assert await instance.wait_for_completion(PATIENCE) == "done"
            nowhere(tmp_path)
        assert login.received == [CANARY]

    async def test_a_reference_of_another_run_opens_nothing(self, tmp_path: Path) -> None:
        app, login = office(tmp_path)
        async with app:
            first, _ = await up_to_the_second(app)
            [stolen] = [one.key for one in await app.journal.all_kept("secret", 0.0)]
            load(
                app,
                step("L001", "001", "001", tool="login", args={"user": "x", "password": stolen}),
                plan_id="thief",
            )
            thief = await start(app, "thief")
            assert await thief.wait_for_completion(PATIENCE) == "error"
            assert "a secret that the call needs for password is not there" in str(thief.context)
            assert first.id != thief.id
        assert login.received == []


class TestKeepSecret:
    async def test_it_is_taken_ahead_and_the_answer_names_it(self, tmp_path: Path) -> None:
        app, login = office(tmp_path)
        async with app:
            load(app, *ASKS_TWICE)
            instance = await start(app)
            question = await question_of(app, instance)
            reference = await app.sessions.keep_secret(question, "pin", CANARY, by="will")
            assert is_reference(reference)
            with pytest.raises(InvalidAnswer, match="does not fit"):
                await app.answer(question, data={"pin": reference}, by="somebody else")
            await app.answer(question, data={"pin": reference}, by="will")
            await app.answer(question, data={"pin": CANARY}, by="will")
            with pytest.raises(TooLate, match="is answered"):
                await app.sessions.keep_secret(question, "pin", CANARY)
            await app.answer(await question_of(app, instance), option_id="confirm")
            assert await instance.wait_for_completion(PATIENCE) == "done"
            nowhere(tmp_path)
        assert login.received == [CANARY]

    async def test_it_is_forgotten_after_an_hour_and_kept_with_the_answer(
        self, clock: ManualClock
    ) -> None:
        app = Holdfast.in_memory(clock=clock)
        async with app:
            load(app, step("L001", "001", "001", form={"pin": {"type": "secret"}, "name": {}}))
            instance = await start(app)
            question = await question_of(app, instance)
            reference = await app.sessions.keep_secret(question, "pin", CANARY)
            for field, value in (("name", "x"), ("no", "x"), ("pin", reference), ("pin", "")):
                with pytest.raises(InvalidAnswer) as refused:
                    await app.sessions.keep_secret(question, field, value)
                assert list(refused.value.fields) == [field]
            clock.advance(3601)
            with pytest.raises(InvalidAnswer, match="does not fit"):
                await app.answer(question, data={"pin": reference, "name": "Will"})
            reference = await app.sessions.keep_secret(question, "pin", CANARY)
            await app.answer(question, data={"pin": reference, "name": "Will"})
            clock.advance(7200)
            assert await app.vault.open([reference], instance.id) == {reference: CANARY}

    async def test_several_people_may_enter_the_same_and_each_answers_with_their_own(self) -> None:
        app = Holdfast.in_memory()
        async with app:
            load(app, step("L001", "001", "001", form={"pin": {"type": "secret"}}))
            instance = await start(app)
            question = await question_of(app, instance)
            reference = await app.sessions.keep_secret(question, "pin", CANARY, by="will")
            assert reference == await app.sessions.keep_secret(question, "pin", CANARY, by="wang")
            with pytest.raises(InvalidAnswer, match="does not fit"):
                await app.answer(question, data={"pin": reference}, by="somebody else")
            await app.answer(question, data={"pin": reference}, by="will")
            assert await app.vault.open([reference], instance.id) == {reference: CANARY}

    async def test_to_enter_it_again_takes_nothing_from_the_answer_on_its_way(
        self, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = Holdfast.in_memory(clock=clock)
        async with app:
            load(app, step("L001", "001", "001", form={"pin": {"type": "secret"}}))
            instance = await start(app)
            question = await question_of(app, instance)
            reference = await app.sessions.keep_secret(question, "pin", CANARY)
            attach = app.journal.attach

            async def answered_meanwhile(attached: Attached) -> None:
                monkeypatch.setattr(app.journal, "attach", attach)
                await app.answer(question, data={"pin": reference})
                await attach(attached)

            monkeypatch.setattr(app.journal, "attach", answered_meanwhile)
            assert await app.sessions.keep_secret(question, "pin", CANARY) == reference
            clock.advance(7200)
            assert await app.vault.open([reference], instance.id) == {reference: CANARY}

    async def test_it_is_a_deed_of_whoever_was_let_in_and_names_no_value(self) -> None:
        app = Holdfast.in_memory()
        async with app:
            load(app, step("L001", "001", "001", form={"pin": {"type": "secret"}}))
            instance = await start(app)
            question = await question_of(app, instance)
            with acting(Identity("will", "127.0.0.1", "tok_1")):
                reference = await app.sessions.keep_secret(question, "pin", CANARY, by="will")
            [entry] = [one.record for one in await app.journal.audit()]
            assert (entry.who, entry.action, entry.subject) == ("will", "entered_secret", question)
            assert (entry.run_id, entry.origin) == (instance.id, "127.0.0.1")
            assert json.loads(entry.detail) == {"field": "pin", "via": "tok_1"}
            row = await app.journal.question(question)
            assert row is not None
            assert entry.seen == request_digest(request_of(row))
            assert reference not in str(entry)

    async def test_a_question_whose_time_is_over_takes_none(self, clock: ManualClock) -> None:
        app = Holdfast.in_memory(clock=clock)
        async with app:
            keys = {"form": {"pin": {"type": "secret"}}, "timeout_seconds": 60}
            load(app, step("L001", "001", "001", **keys))
            question = await question_of(app, await start(app))
            [row] = await app.inbox()
            assert request_of(row).timeout_seconds == 60
            clock.advance(61)
            with pytest.raises(TooLate):
                await app.sessions.keep_secret(question, "pin", CANARY)


@pytest.mark.own_store  # a database's key is not in a home
class TestKeys:
    async def test_after_a_restart_the_secret_still_reaches_the_tool(self, tmp_path: Path) -> None:
        app, _ = office(tmp_path)
        async with app:
            instance, ready = await up_to_the_second(app)
        file = tmp_path / KEY_FILE
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        second, login = office(tmp_path)
        async with second:
            await second.answer(ready, option_id="confirm")
            done = await second.instance(instance.id)
            assert await done.wait_for_completion(PATIENCE) == "done"
        assert login.received == [CANARY]
        nowhere(tmp_path)

    async def test_another_key_is_told_plainly_and_the_right_one_mends_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app, _ = office(tmp_path)
        async with app:
            instance, ready = await up_to_the_second(app)
        monkeypatch.setenv(KEY_VARIABLE, base64.b64encode(os.urandom(32)).decode())
        second, login = office(tmp_path)
        async with second:
            await second.answer(ready, option_id="confirm")
            failed = await second.instance(instance.id)
            assert await failed.wait_for_completion(PATIENCE) == "error"
            assert "cannot be opened with this installation's key" in str(failed.context)
        monkeypatch.delenv(KEY_VARIABLE)
        third, also = office(tmp_path)
        async with third:
            await third.resume(instance.id)
            mended = await third.instance(instance.id)
            assert await mended.wait_for_completion(PATIENCE) == "done"
        assert (login.received, also.received) == ([], [CANARY])

    @pytest.mark.parametrize("text", ["not a key", "aGk=", ""])
    async def test_what_is_no_key_is_said_when_it_is_needed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        monkeypatch.setenv(KEY_VARIABLE, text)
        app, _ = office(tmp_path)
        async with app:
            load(app, *ASKS_TWICE)
            question = await question_of(app, await start(app))
            with pytest.raises(OperatorError, match=f"{KEY_VARIABLE} is no key for secrets"):
                await app.answer(question, data={"pin": CANARY})

    async def test_a_key_that_others_can_read_is_not_used(self, tmp_path: Path) -> None:
        file = tmp_path / KEY_FILE
        file.write_text(base64.b64encode(os.urandom(32)).decode())
        file.chmod(0o644)
        app, _ = office(tmp_path)
        async with app:
            with pytest.raises(OperatorError, match="chmod 600"):
                app.vault.derived("anything")

    async def test_a_ciphertext_put_under_another_name_does_not_open(self) -> None:
        app = Holdfast.in_memory()
        async with app:
            vault = Vault(app.journal, os.urandom(32), ManualClock())
            _, kept = vault.seal("q", "pin", "inst_000001", CANARY)
            assert CANARY not in kept.body
            moved = f"secret:{'0' * 32}"
            await app.journal.attach(Attached(kept=[replace(kept, key=moved)]))
            with pytest.raises(OperatorError):
                await vault.open([moved], "inst_000001")
            assert await vault.open([moved, "secret:none"], "inst_000002") == {}
