"""Torch runs backward passes on a GPU in threads of its own, which are not heard either."""

import logging
import sys
import threading

import pytest
import torch

from gputune.live.unheard import unheard

pytestmark = pytest.mark.gpu


class Speaks(torch.autograd.Function):
    """Its backward pass prints, writes and logs."""

    threads: list[int] = []

    @staticmethod
    def forward(ctx, inputs):
        return inputs.clone()

    @staticmethod
    def backward(ctx, *gradients):
        Speaks.threads.append(threading.get_ident())
        print("printed")
        sys.stderr.write("written\n")
        logging.getLogger("program").warning("logged")
        return gradients[0]


def backward():
    Speaks.apply(torch.ones(1, device="cuda", requires_grad=True)).sum().backward()


def test_a_backward_pass_is_not_heard(capfd, monkeypatch):
    logged = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: logged.append(record.getMessage()))
    monkeypatch.setattr(logging.getLogger("program"), "handlers", [handler])
    with unheard():
        backward()
    assert Speaks.threads.pop() != threading.get_ident()
    assert capfd.readouterr() == ("", "")
    assert not logged
    backward()
    assert capfd.readouterr() == ("printed\n", "written\n")
    assert logged == ["logged"]
