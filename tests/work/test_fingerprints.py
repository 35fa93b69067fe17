"""Fingerprints change with what a function would do, and with nothing else."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.language.strict import digest
from holdfast.work.fingerprints import fingerprint


def made(source: str) -> Callable[..., Any]:
    """A function whose source is not at hand."""
    names: dict[str, Any] = {}
    exec(source, names)
    function: Callable[..., Any] = names["pay"]
    return function


def paying(account: object) -> Callable[..., Any]:
    def pay() -> object:
        return account

    return pay


class Payer:
    def __init__(self, account: object) -> None:
        self.account = account

    def __call__(self) -> object:
        return self.account

    def pay(self) -> object:
        return self.account

    @classmethod
    def pay_all(cls) -> None: ...


class Slotted:
    __slots__ = ("account", "unset")

    def __init__(self, account: object) -> None:
        self.account = account

    def __call__(self) -> object:
        return self.account


class OneSlot(Payer):
    __slots__ = "more"


def logged(prefix: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def pay() -> object:
        return prefix, fn()

    return pay


MAKERS = pytest.mark.parametrize(
    "make",
    [
        lambda account: made(f"def pay(): return {account!r}"),
        lambda account: made(f"def pay(): return lambda: {account!r}"),
        lambda account: made(f"def pay(x): return x in {{{account!r}, 'other', 'third'}}"),
        lambda account: made(f"def pay(x): return ({account!r}, 1)"),
        lambda account: made(f"def pay(to={account!r}): return to"),
        lambda account: made(f"def pay(*, to={account!r}): return to"),
        lambda account: made(f"def pay(): return {account}()"),
        paying,
        lambda account: paying({"account": [account]}),
        lambda account: paying(paying(account)),
        lambda account: paying(Payer(account).pay),
        Payer,
        Slotted,
        OneSlot,
        lambda account: Payer(account).pay,
        lambda account: functools.partial(max, account),
        lambda account: functools.partial(max, key=account),
        lambda account: functools.partial(paying(account)),
        lambda account: functools.cache(paying(account)),
        lambda account: logged(account, paying("same")),
        lambda account: logged("same", paying(account)),
    ],
)


@MAKERS
def test_it_sees_what_would_be_done(make: Callable[[str], Callable[..., Any]]) -> None:
    acme, again, other = (digest(fingerprint(make(one))) for one in ("acme", "acme", "mallory"))
    assert acme == again != other


def test_what_is_not_plain_counts_by_its_type_alone() -> None:
    first, second, other = (fingerprint(paying(one)) for one in (object(), object(), Payer("x")))
    assert first == second != other


def test_a_text_is_not_taken_for_the_type_that_it_names() -> None:
    assert fingerprint(paying("builtins.object")) != fingerprint(paying(object()))


def test_a_wrapper_is_seen_and_not_only_what_it_wraps() -> None:
    inner = paying("same")
    assert digest(fingerprint(logged("same", inner))) != digest(fingerprint(inner))


def test_a_function_that_holds_itself_or_nothing_yet_has_an_end() -> None:
    def pay(left: int) -> int:
        return pay(left - 1) if left else later

    before = digest(fingerprint(pay))
    later = 5
    assert digest(fingerprint(pay)) != before


def test_builtins_and_class_methods_go_by_their_names() -> None:
    assert fingerprint(len) == "len"
    assert fingerprint(Payer.pay_all) != fingerprint(OneSlot.pay_all)


def test_it_is_the_same_in_every_process() -> None:
    program = """if True:
        import sys
        from holdfast.language.strict import digest
        from holdfast.work.fingerprints import fingerprint
        names = {}
        exec("def pay(x, y=object()): return x in {'a', 'b', 'c', 'd'} and (lambda: {1, 2})", names)
        sys.stdout.write(digest(fingerprint(names["pay"])))
    """
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1
    assert told != {b""}
