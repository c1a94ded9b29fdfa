"""Wrong usage is one line: which word, what is wrong with it, and what was probably meant."""

import pytest
from forked import refusal


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("chekc", "no such command 'chekc'. Did you mean 'check'?"),
        ("xyz", "no such command 'xyz'; see: gputune --help"),
        ("deploy kubernetes jb", "no such command 'jb'. Did you mean 'job'?"),
        ("--versoin", "no such option: --versoin (Possible options: --version)"),
        ("probe --budgett=quick", "no such option: --budgett (Possible options: --budget)"),
        ("check -x", "no such option: -x; see: gputune check --help"),
        ("show", "missing argument 'PROFILE'; see: gputune show --help"),
        ("merge a.yaml", "missing option '-o' / '--output'; see: gputune merge --help"),
        ("check --timeout", "option '--timeout' requires an argument; see: gputune check --help"),
        ("show --json=3 p.yaml", "option '--json' does not take a value; see: gputune show --help"),
        ("check here", "got unexpected extra argument(s) (here); see: gputune check --help"),
        ("check --fail-on warn", "--fail-on warn: there is no such level; did you mean warning?"),
        ("apply --numerics mixd p.yaml", "--numerics mixd: there is no such level; did you mean mixed?"),
        ("explain shmsize", "shmsize: there is no such setting, check or bench; did you mean shm_size?"),
        ("check pad", "got unexpected extra argument(s) (pad); see: gputune check --help"),
    ],
)
def test_a_line(typed, said):
    assert refusal(*typed.split()) == f"gputune: {said}\n"


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("pad 50257", "gputune explain dimension_multiple"),
        ("pad 50257 --profile profile.yaml --json", "gputune show --all PROFILE"),
        ("schema --of check", "gputune explain profile-schema, check-schema or status-schema"),
        ("probe --device all --each profiles", "gputune probe --device cuda:N -o FILE"),
        ("--version -v", "gputune bug-report"),
        ("--verbose --version", "gputune bug-report"),
        ("probe --each=profiles", "gputune probe --device cuda:N -o FILE"),
    ],
)
def test_what_was_removed_names_what_replaces_it(typed, instead):
    assert instead in refusal(*typed.split())
    assert "no such option: --vrbose" in refusal("check", "--vrbose", *typed.split())


@pytest.mark.parametrize("number", ["300", "-1", "x"])
def test_a_number_out_of_range_is_one_line(number):
    said = refusal("check", f"--expect-gpus={number}")
    assert said.startswith("gputune: invalid value for '--expect-gpus': ")
    assert said.endswith("; see: gputune check --help\n")
