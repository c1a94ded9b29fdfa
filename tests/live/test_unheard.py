"""Code of a program's that runs once more than the program asks for is not heard; its other threads are."""

import logging
import sys
import threading

import pytest
import torch

from gputune.live.unheard import unheard


def say(what: str) -> None:
    print(what, "printed", flush=True)
    sys.stdout.buffer.write(f"{what} in bytes\n".encode())
    sys.stdout.buffer.flush()
    sys.stderr.writelines([f"{what} written\n"])
    logging.getLogger("program").warning("%s logged", what)


class Speaks(torch.autograd.Function):
    """Its backward pass says something, on a GPU in a thread of torch's."""

    @staticmethod
    def forward(ctx: object, inputs: torch.Tensor) -> torch.Tensor:
        return inputs.clone()

    @staticmethod
    def backward(ctx: object, *gradients: torch.Tensor) -> torch.Tensor:
        say("backward")
        return gradients[0]


def test_only_this_thread_is_not_heard(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    logged = list[str]()
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: logged.append(record.getMessage()))
    monkeypatch.setattr(logging.getLogger("program"), "propagate", False)
    monkeypatch.setattr(logging.getLogger("program"), "handlers", [handler])
    may_speak, has_spoken = threading.Event(), threading.Event()

    def others() -> None:
        may_speak.wait()
        say("another thread")
        has_spoken.set()

    thread = threading.Thread(target=others)
    thread.start()
    with unheard():
        say("this thread")
        Speaks.apply(torch.ones(1, requires_grad=True)).sum().backward()  # type: ignore[no-untyped-call]
        may_speak.set()
        has_spoken.wait()
    thread.join()
    say("this thread, later,")
    out, err = capfd.readouterr()
    heard = ("another thread", "this thread, later,")
    assert out.splitlines() == [f"{thread} {how}" for thread in heard for how in ("printed", "in bytes")]
    assert err.splitlines() == ["another thread written", "this thread, later, written"]
    assert logged == ["another thread logged", "this thread, later, logged"]


def test_two_threads_may_be_silent_and_end_in_any_order(capfd: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout
    is_silent, may_end = threading.Event(), threading.Event()

    def other() -> None:
        with unheard():
            is_silent.set()
            may_end.wait()
            print("the other one")

    thread = threading.Thread(target=other)
    with unheard():
        thread.start()
        is_silent.wait()
    print("this one")
    may_end.set()
    thread.join()
    assert sys.stdout is before
    assert capfd.readouterr().out == "this one\n"


def test_streams_may_be_missing_and_return_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tee:
        written = ""

        def write(self, text: str) -> None:
            self.written += text

    tee = Tee()
    monkeypatch.setattr(sys, "stdout", tee)
    monkeypatch.setattr(sys, "stderr", None)
    with unheard():
        thread = threading.Thread(target=print, args=("another thread",))
        thread.start()
        thread.join()
        print("this thread")
    assert tee.written == "another thread\n"
