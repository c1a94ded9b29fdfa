"""What was done about each setting, and what holds, at 80 columns."""

import io

from gputune.live.advice import Advice
from gputune.live.applied import Applied
from gputune.report.applied import print_advice, print_applied, print_status
from gputune.runtime.status import ProgramStatus, Status, Verified

WHY = "exported"
THREADS = Applied(setting="omp_threads", before=2, after=4, status="kept-user", source="environment", reasons=(WHY,))


def shown(printer, *arguments):
    stream = io.StringIO()
    printer(*arguments, stream)
    return stream.getvalue()


def test_what_was_applied_is_shown_with_why():
    assert shown(print_applied, [THREADS]).splitlines()[-1].split() == ["omp_threads", "4", "kept-user", "exported"]


def status(**more):
    return Status(torch="2.11.0", python="/usr/bin/python3", gpu="NVIDIA H200", settings=(THREADS,), **more)


def test_what_holds_is_shown_with_whose_it_is():
    text = shown(print_status, status(), False)
    assert text.startswith("torch 2.11.0 of /usr/bin/python3, NVIDIA H200\n")
    assert text.splitlines()[-1].split() == ["omp_threads", "2", "4", "kept-user", "(environment)", "exported"]


def test_the_digest_of_what_was_applied_stands_on_top():
    text = shown(print_status, status(digest="0123456789abcdef"), False)
    assert text.splitlines()[1] == "applied here: 0123456789abcdef"
    assert "applied here" not in shown(print_status, status(), False)


def test_what_computations_say_stands_beside_the_flag():
    checks = (
        Verified(operation="matmul", setting="matmul_precision", value="tf32", relative_error=2.9e-4, took_effect=True),
        Verified(operation="conv", setting="cudnn_tf32", value=True, relative_error=4.3e-7, took_effect=False),
    )
    text = shown(print_status, status(verified=checks, override="0"), True)
    assert "NVIDIA_TF32_OVERRIDE=0 decides whether TF32 is used" in text
    assert [" ".join(line.split()) for line in text.splitlines()[-2:]] == [
        "matmul matmul_precision tf32 2.9e-04 took effect",
        "conv cudnn_tf32 on 4.3e-07 did NOT take effect",
    ]


def test_tuned_programs_are_listed_with_what_is_applied_to_them_or_how_they_differ():
    programs = (
        ProgramStatus(entry="train.py", settings=("dataloader_workers", "compile"), differences=()),
        ProgramStatus(entry="old.py", settings=(), differences=("torch (2.11.0 there, 2.13.0 here)",)),
    )
    text = " ".join(shown(print_status, status(programs=programs), False).split())
    assert "train.py, as tuned: dataloader_workers, compile, for its models alone." in text
    assert "old.py was tuned elsewhere (torch (2.11.0 there, 2.13.0 here)): not all of it is applied" in text


def test_without_a_gpu_it_says_that_nothing_was_verified():
    found = Status(torch="2.13.0+cpu", python="python", gpu=None, settings=())
    assert "Not verified: torch sees no GPU here" in shown(print_status, found, True)
    assert "verified" not in shown(print_status, found, False)


def test_what_would_go_into_models_is_what_goes_in():
    advice = Advice(
        device="cuda",
        general={"fused_optimizer": True, "matmul_precision": "tf32"},
        families={
            "convnet": {"amp_dtype": "float16", "compile": True},
            "recurrent": {"amp_dtype": "bfloat16"},
            "mlp": {},
        },
    )
    _, _, *rows = shown(print_advice, advice).splitlines()
    assert " ".join(" ".join(rows).split()) == (
        "a convnet amp_dtype bfloat16 in place of float16, where the GPU has it, compile "
        "a recurrent network amp_dtype bfloat16 an MLP nothing any other model fused_optimizer, matmul_precision tf32"
    )
