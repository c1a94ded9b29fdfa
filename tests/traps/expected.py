"""What becomes of each setting in each script of `scripts/`: the status, and a part of each reason's sentence."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PUT = "applied: put into"
KEPT = "kept-user: the program gave"


def rows(
    amp: str = PUT, last: str = "skipped: it has no 2-d convolutions", fused: str = PUT, **more: str
) -> dict[str, str]:
    return {"amp_dtype": amp, "channels_last": last, "fused_optimizer": fused, **more}


def all_rows(words: str, **more: str) -> dict[str, str]:
    return rows(words, words, words, **more)


@dataclass(frozen=True, kw_only=True)
class Trap:
    rows: Mapping[str, str] = field(default_factory=rows)
    flags: Mapping[str, str] = field(default_factory=dict)
    """The flags of torch's that are set at the start."""
    compiles: bool = False
    """Whether torch.compile is put in as well."""
    fresh: bool = False
    """Whether it needs a process of its own, from its start on."""
    words: tuple[str, ...] = ()
    """Of the interpreter, before the script."""
    script: str = ""
    """Its file, if that has not its name."""
    argv: tuple[str, ...] = ()
    """What the script is given."""
    raises: bool = False
    """Whether it ends with a traceback, in which gputune's lines may stand between the program's own."""
    since: tuple[int, int] = (2, 4)
    """The first torch in which it works at all."""
    fault: str = ""
    """What is known not to hold."""


IMAGES = rows(last=PUT)
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--local-ranks-filter=0")
"""The ranks' own words would come in any order."""
NEVER = all_rows("skipped: no optimizer took two steps")
UNTRAINED = (
    f"{PUT}; no optimizer of torch's has trained it",
    rows()["channels_last"],
    f"{PUT}; no optimizer of torch's",
)
FAILED = "failed: its call failed with it"
HOOKED = "skipped: it has a forward hook"
FUNCTION = "skipped: an autograd.Function that may not"
MADE_ONCE_MORE = (
    "a buffer in a graph", "a function that forgets", "a generator among the inputs", "a large list",
    "a list that is taken off", "an iterator among the inputs", "an own checkpoint", "hooks on weights",
)  # fmt: skip
TRAPS: dict[str, Trap] = {
    "batches_of_their_own_length": Trap(rows=rows(compile=PUT), compiles=True),
    "codes_beside_the_loss": Trap(rows=rows("failed: of its whole numbers at equal weights")),
    "custom_function_with_custom_fwd_alone": Trap(
        rows=rows("failed: in its backward pass"), script="custom_function", argv=("half",)
    ),
    "far_positions": Trap(rows=rows("failed: at equal weights")),
    "gradients_not_finite": Trap(rows=rows("failed: gradients were not finite")),
    "hooks_on_activations": Trap(rows=rows("skipped: its forward puts hooks on activations"), argv=("early",)),
    "hooks_on_activations_later": Trap(
        rows=rows("failed: its forward puts a hook"), script="hooks_on_activations", argv=("late",)
    ),
    "hooks_on_modules_later": Trap(
        rows=rows("failed: a module has got a hook"), script="hooks_on_activations", argv=("module",)
    ),
    "kept_at_the_end_of_an_epoch": Trap(),
    "loses_its_gradient": Trap(rows=rows("failed: its outputs require gradients")),
    "slower_in_half_precision": Trap(rows=rows("failed: a step takes")),
    "accumulation": Trap(),
    "action_of_a_distribution": Trap(),
    "add_param_group": Trap(),
    "anomaly_detection": Trap(),
    "assertion_in_forward": Trap(rows=rows(FAILED), script="in_forward", argv=("Assertion",)),
    "assertion_in_the_loop": Trap(rows=IMAGES),
    "autocast_off_in_forward": Trap(script="in_forward", argv=("AutocastOff",)),
    "averaged_model": Trap(rows=IMAGES),
    "bce_in_forward": Trap(script="in_forward", argv=("Bce",)),
    "bce_in_loop": Trap(rows=rows("skipped: the loss takes logarithms of its sigmoids")),
    "by_layers": Trap(rows=IMAGES),
    "checkpoint_while_training": Trap(),
    "checkpointing": Trap(),
    "checkpointing_reentrant": Trap(script="checkpointing", argv=("reentrant",)),
    "checkpointing_selective": Trap(
        rows=rows("skipped: selective checkpointing"), since=(2, 5), script="checkpointing", argv=("selective",)
    ),
    "clipping": Trap(),
    "closure": Trap(),
    "compiled_backward_fails": Trap(rows=rows(FUNCTION, FUNCTION, compile=FAILED), compiles=True, since=(2, 8)),
    "compiled_checkpointing": Trap(
        rows=rows(compile=f"{PUT}; under hooks on what is saved; under hooks on what is saved"),
        compiles=True,
        since=(2, 8),
        script="checkpointing",
        argv=("sequence",),
    ),
    "compiled_ddp": Trap(rows=rows(compile=PUT), compiles=True),
    "compiled_ddp_small_buckets": Trap(
        rows=rows(compile="failed: its call failed with it: AssertionError: First bucket"),
        compiles=True,
        script="compiled_ddp",
        argv=("small",),
    ),
    "compiled_gradient_penalty": Trap(rows=rows(compile=PUT), compiles=True, script="gradient_penalty", argv=("3",)),
    "compiled_graph_breaks": Trap(rows=rows(compile=PUT), compiles=True),
    "compiled_mlp": Trap(rows=rows(compile=PUT), compiles=True),
    "compiled_retain_graph": Trap(rows=rows(compile=PUT), compiles=True),
    "compiled_spectral_norm": Trap(rows=rows(compile=PUT), compiles=True),
    "compiled_spectral_norm_in_buffers": Trap(
        rows=rows(compile="failed: its call failed with it: BackwardFailed: its backward pass needs buffers"),
        compiles=True,
        since=(2, 8),
        script="compiled_spectral_norm",
        argv=("buffers",),
    ),
    "compiled_unfreezing": Trap(rows=rows(compile=PUT), compiles=True),
    "compiled_unfreezing_with_another_head": Trap(
        rows=rows(compile=PUT), compiles=True, script="compiled_unfreezing", argv=("head",)
    ),
    "convnet": Trap(rows=IMAGES),
    "copy_of_attributes": Trap(rows=rows(*UNTRAINED)),
    "custom_function": Trap(rows=rows(FUNCTION)),
    "custom_function_late": Trap(
        script="custom_function", argv=("late",), fault="a function that comes into use later is not looked at"
    ),
    "custom_function_with_custom_fwd": Trap(script="custom_function", argv=("ready",)),
    "data_parallel": Trap(script="wrapped", argv=("data_parallel",)),
    "ddp_torchrun": Trap(rows=rows(last=PUT), fresh=True, words=TORCHRUN),
    "deterministic": Trap(rows=IMAGES),
    "early_exit": Trap(fresh=True, script="ending", argv=("exit",)),
    "ema_deepcopy": Trap(),
    "exception_as_a_signal": Trap(rows=rows(HOOKED)),
    "exception_caught": Trap(),
    "exception_in_forward": Trap(rows=NEVER, raises=True, script="exception", argv=("RuntimeError", "0")),
    **{
        f"exception_later_{name.lower()}": Trap(raises=True, script="exception", argv=(name, "4"))
        for name in ("KeyError", "RuntimeError", "ValueError")
    },
    **{
        f"exceptions_of_its_own_{kind}": Trap(script="exceptions_of_its_own", argv=(kind,))
        for kind in ("value", "words", "derived")
    },
    "export": Trap(),
    "forces": Trap(rows=rows(compile="skipped: (create_graph)"), compiles=True),
    "fork_child": Trap(),
    "forward_method": Trap(rows=all_rows("skipped: no model that returned"), script="in_forward", argv=("Direct",)),
    "frozen_backbone": Trap(),
    "fsdp2": Trap(
        rows=all_rows("skipped: holds the parameters in its own way"), since=(2, 6), script="wrapped", argv=("fsdp2",)
    ),
    "functional": Trap(),
    "fx_trace": Trap(),
    "gan": Trap(),
    "global_hooks": Trap(rows=rows(HOOKED)),
    "gradients_turn_sparse": Trap(rows=rows(fused="failed: its gradients became sparse")),
    "gradient_penalty": Trap(rows=rows(compile="skipped: (create_graph)"), compiles=True, argv=("1",)),
    "gradient_penalty_of_images": Trap(rows=rows(last=PUT)),
    "inference_only": Trap(rows=NEVER, script="inference"),
    **{
        f"gradients_of_outputs_{how}": Trap(
            rows=rows("skipped: the program takes gradients", "skipped: the program takes gradients"),
            script="gradients_of_outputs",
            argv=(how,),
        )
        for how in ("grad", "hook", "retain")
    },
    "graph_convolution": Trap(rows=rows("failed: in its backward pass")),
    "jit_script": Trap(
        rows=rows(
            PUT + "; is compiled by torch.jit",
            "skipped: it has no 2-d convolutions; is compiled by torch.jit",
            PUT + "; is compiled by torch.jit",
        ),
    ),
    "jit_trace": Trap(rows=IMAGES),
    "keyboard_interrupt": Trap(fresh=True, raises=True, script="ending", argv=("interrupted",)),
    "keyboard_interrupt_in_forward": Trap(),
    "lazy_modules": Trap(rows=IMAGES),
    "lbfgs": Trap(rows=all_rows("skipped: trained by"), script="closure", argv=("lbfgs",)),
    "lbfgs_tf32": Trap(
        rows=all_rows("skipped: trained by", matmul_precision="applied: right after import torch"),
        flags={"matmul_precision": "tf32"},
        script="closure",
        argv=("lbfgs", "precision"),
    ),
    **{
        f"linear_algebra_{kind}": Trap(
            rows=rows("skipped: the loss factorises matrices"), script="linear_algebra", argv=(kind,)
        )
        for kind in ("cholesky", "eigh", "logdet", "qr", "solve")
    },
    "linear_algebra_norms": Trap(script="linear_algebra", argv=("norms",)),
    "loader_workers": Trap(),
    "lr_scheduler": Trap(),
    "lstm_packed": Trap(),
    **{
        f"made_once_more_{number}": Trap(script="made_once_more", argv=(form,))
        for number, form in enumerate(MADE_ONCE_MORE)
    },
    "many_layers": Trap(rows=all_rows("skipped: are called one by one")),
    "mlp": Trap(),
    "model_becomes_bfloat16": Trap(rows=rows(fused="failed: its gradients became bfloat16")),
    "model_becomes_double": Trap(rows=rows(fused=PUT + "; its parameters are")),
    **{
        f"model_{dtype}": Trap(rows=all_rows("skipped: its parameters are"), script="model_dtype", argv=(dtype,))
        for dtype in ("bfloat16", "complex64", "double")
    },
    "one_step": Trap(rows=NEVER, script="inference", argv=("step",)),
    "optimizer_each_epoch": Trap(),
    "optimizer_in_backward": Trap(),
    "optimizer_own": Trap(rows=rows(fused="skipped: is none of torch's Adam, AdamW, SGD")),
    "optimizer_pickled": Trap(),
    "optimizer_subclass": Trap(rows=rows(fused="skipped: is none of torch's Adam, AdamW, SGD")),
    "output_in_an_object": Trap(
        rows=all_rows("skipped: no model that returned"), script="outputs_of_kinds", argv=("object",)
    ),
    "output_is_an_input": Trap(rows=IMAGES),
    "output_kept_aside": Trap(),
    "outputs_of_kinds": Trap(rows=rows(PUT + "; it returns a Strict")),
    "own_autocast": Trap(rows=rows("kept-user: uses autocast"), argv=("0",)),
    "own_autocast_in_forward": Trap(rows=rows("kept-user: uses autocast")),
    "own_autocast_later": Trap(script="own_autocast", argv=("5",)),
    "own_call": Trap(),
    "own_channels_last": Trap(rows=rows(last="kept-user: in channels_last already")),
    "own_compile": Trap(rows=rows(compile="kept-user: compiles it itself"), compiles=True),
    "own_compile_function": Trap(
        rows=all_rows("skipped: no model that returned"), since=(2, 5), script="own_compile", argv=("function",)
    ),
    "own_compile_in_place": Trap(rows=rows(compile="kept-user: compiles it itself"), compiles=True),
    "own_compile_later": Trap(script="own_compile_in_place", argv=("later",)),
    "own_fused": Trap(rows=rows(fused=KEPT + 3 * "; the program gave")),
    "own_fused_goes_back": Trap(rows=rows(last="skipped: the program gave fused=True", fused=KEPT)),
    "own_fused_in_a_group": Trap(rows=rows(fused=KEPT)),
    "own_getstate": Trap(),
    "own_scaler": Trap(rows=rows("kept-user: uses autocast")),
    "own_scaler_overflows": Trap(),
    "packed_output": Trap(),
    "parametrized": Trap(rows=IMAGES),
    "random_numbers": Trap(),
    "random_numbers_when_a_call_fails": Trap(rows=rows(FAILED)),
    "records": Trap(rows=rows("skipped: its calls keep tensors in records")),
    "same_seed_twice": Trap(rows=IMAGES),
    "save": Trap(rows=IMAGES),
    "several_calls": Trap(),
    "several_models_one_optimizer": Trap(),
    "sigterm": Trap(rows={}, fresh=True, script="ending", argv=("sigterm",)),
    "sigterm_handled": Trap(fresh=True, script="ending", argv=("sigterm_handled",)),
    "sparse_embedding": Trap(rows=rows(fused="skipped: its gradients are sparse")),
    "sparse_gradients_later": Trap(
        rows=rows(fused="skipped: its gradients are sparse"), script="sparse_embedding", argv=("later",)
    ),
    "spawn_child": Trap(fresh=True),
    "steps_without_model": Trap(rows=all_rows("skipped: no model that returned")),
    "tasks_in_turn": Trap(rows=rows(last=PUT, compile=PUT), compiles=True),
    "tensor_subclass": Trap(since=(2, 5)),
    **{
        f"tf32_set_later{name}": Trap(
            rows=rows(matmul_precision="changed-later: the program later changed it from tf32"),
            flags={"matmul_precision": "tf32"},
            script="tf32_set_later",
            argv=(how,),
            since=since,
        )
        for name, how, since in (
            ("", "root", (2, 9)),
            ("_for_matmuls", "operation", (2, 9)),
            ("_by_a_flag", "flag", (2, 4)),
            ("_by_a_level", "level", (2, 4)),
        )
    },
    "thread_of_its_own": Trap(),
    "tied_weights": Trap(),
    "trains_in_forward": Trap(
        rows=rows("skipped: its forward trains it", compile="skipped: its forward trains it"),
        compiles=True,
    ),
    "two_threads": Trap(),
    "user_hooks": Trap(rows=rows(HOOKED)),
    "validation": Trap(),
    "validation_with_gradients": Trap(script="validation", argv=("gradients",)),
    "vector_of_weights": Trap(rows=rows(last=PUT)),
    "view_in_forward": Trap(rows=rows(last=FAILED)),
    "view_in_forward_without_gradients": Trap(rows=rows(last=FAILED)),
    "view_of_output": Trap(rows=IMAGES),
    "view_of_weights": Trap(
        rows=IMAGES,
        script="view_of_output",
        argv=("weights",),
        fault="weights in channels_last cannot be flattened with view",
    ),
    "writes_through_data": Trap(rows=rows(last=FAILED)),
    "wrong_dtype_in_forward": Trap(rows=rows(FAILED), script="in_forward", argv=("WrongDtype",)),
    "zero_redundancy": Trap(rows=all_rows("skipped: trained by"), script="wrapped", argv=("zero_redundancy",)),
}
LOADS = {"checkpoint": Trap(rows=IMAGES, script="load"), "whole": Trap(rows=IMAGES, script="load", argv=("whole",))}
"""What is loaded of what `save.py` saved."""
