"""Wrong usage is one line: which word, what is wrong with it, and what was probably meant."""

import pytest
from forked import refusal


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("chekc", "chekc: no such command; did you mean check?"),
        ("xyz", "xyz: no such command; see: gputune --help"),
        ("deploy slrm", "slrm: no such command; did you mean slurm?"),
        ("deploy kubernetes jb", "jb: no such command; did you mean job?"),
        ("--versoin", "--versoin: no such option; did you mean --version?"),
        ("probe --budgett quick", "--budgett: no such option; did you mean --budget?"),
        ("probe --budgett=quick", "--budgett: no such option; did you mean --budget?"),
        ("apply --ignore-fingerprnt p.yaml", "--ignore-fingerprnt: no such option; did you mean --ignore-fingerprint?"),
        ("check -x", "-x: no such option; see: gputune check --help"),
        ("show", "PROFILE is missing; as in: gputune show profile.yaml"),
        ("apply", "PROFILE is missing; as in: gputune apply auto -- python train.py"),
        ("merge a.yaml", "--output is missing; as in: gputune merge node0.yaml node1.yaml -o job.yaml"),
        ("check --timeout", "--timeout: its value is missing; see: gputune check --help"),
        ("show --json=3 p.yaml", "--json: takes no value; see: gputune show --help"),
        ("check here", "here: is one word too many; usage: gputune check [OPTIONS]"),
        ("pad 1 2", "2: is one word too many; usage: gputune pad [OPTIONS] N"),
        ("check --expect-gpus 300", "--expect-gpus: must be a whole number from 0 to 256; see: gputune check --help"),
        ("check --expect-gpus x", "--expect-gpus: must be a whole number from 0 to 256; see: gputune check --help"),
        ("check --timeout x", "--timeout: must be a number from 0.1 to 600; see: gputune check --help"),
        ("tune --steps 3 -- a", "--steps: must be a whole number from 20 to 1,000,000; see: gputune tune --help"),
        ("batch-size a:b --most 0", "--most: must be a whole number of at least 1; see: gputune batch-size --help"),
        ("pad x", "N: must be a whole number from 1 to 16,777,216; see: gputune pad --help"),
        ("check --fail-on warn", "--fail-on warn: there is no such level; did you mean warning?"),
        ("apply --numerics mixd p.yaml", "--numerics mixd: there is no such level; did you mean mixed?"),
        ("pad 5 --dtype bfloat", "--dtype bfloat: there is no such dtype; did you mean bfloat16?"),
        ("explain shmsize", "shmsize: there is no such setting, check or bench; did you mean shm_size?"),
        ("-v check", "-v: belongs to --version; type: gputune --version -v"),
        ("--verbose", "-v: belongs to --version; type: gputune --version -v"),
    ],
)
def test_a_line(typed, said):
    assert refusal(*typed.split()).replace("python -m gputune", "gputune") == f"gputune: {said}\n"


def test_an_empty_name_says_where_it_may_come_from():
    said = refusal("check", "--python", "")
    assert said.startswith("gputune: --python: it is empty; is the variable set that it comes from?")
