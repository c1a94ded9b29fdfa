"""Labels of a node: what Kubernetes takes, and nothing that changes by itself."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import facts_of

from gputune import __version__, checks
from gputune.checks import Finding
from gputune.host import Host
from gputune.profile import fingerprint, places
from gputune.report import nfd
from gputune.runtime.local_fingerprint import local_fingerprint

LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""Kubernetes, "Labels and Selectors": of a name without its prefix, and of a value that is not empty."""

MOST_BYTES = 65536  # node-feature-discovery ignores a larger file


@pytest.fixture(scope="module")
def facts():
    return facts_of("nvidia-h200-x8")


def found(check, severity="ERROR", subject=None):
    return Finding(check=check, severity=severity, message="so it is", remedy="do this", subject=subject)


def read(text):
    """As node-feature-discovery reads it: comments, and NAME=VALUE."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert not [line for line in text.splitlines() if line.startswith("# +")], "would be a directive"
    return dict(line.split("=", 1) for line in lines)


@given(st.text())
def test_any_text_becomes_a_value_or_nothing(text):
    value = nfd.value(text)
    assert value == "" or LABEL.fullmatch(value)
    assert nfd.value(value) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NVIDIA H200", "NVIDIA-H200"),
        ("NVIDIA-TITAN-X-(Pascal)", "NVIDIA-TITAN-X-Pascal"),
        ("2.11.0+cu130", "2.11.0-cu130"),
        ("(unknown)", "unknown"),
        ("a" * 62 + "--b", "a" * 62),
        ("  ", ""),
        ("Grace\n=x", "Grace-x"),
    ],
)
def test_a_name_keeps_what_it_can(name, value):
    assert nfd.value(name) == value


def test_what_a_machine_is_told_to_be(facts):
    labels = read(nfd.text(facts, checks.run(facts)))
    assert labels["gputune.dev/gpu"] == "NVIDIA-H200"
    assert labels["gputune.dev/torch"] == nfd.value(facts.libraries.torch)
    assert labels["gputune.dev/version"] == __version__
    assert labels["gputune.dev/status"] in ("ok", "warning", "error", "unknown")


def test_every_check_makes_a_label_that_kubernetes_takes(facts):
    labels = read(nfd.text(facts, [found(name) for name in checks.names()]))
    for name, value in labels.items():
        prefix, _, own = name.partition("/")
        assert (prefix, bool(LABEL.fullmatch(own)), bool(LABEL.fullmatch(value))) == ("gputune.dev", True, True)
    assert len(nfd.text(facts, [found(name) for name in checks.names()]).encode()) < MOST_BYTES


@pytest.mark.parametrize(
    ("severities", "status"),
    [
        (["OK", "NOT_APPLICABLE"], "ok"),
        (["NOT_APPLICABLE"], None),
        (["OK", "UNKNOWN"], "unknown"),
        (["UNKNOWN", "WARNING", "OK"], "warning"),
        (["WARNING", "ERROR", "UNKNOWN"], "error"),
    ],
)
def test_the_status_is_the_worst_of_all_and_a_check_with_a_fault_has_a_label(facts, severities, status):
    findings = [found("ecc_errors", severity, f"GPU {index}") for index, severity in enumerate(severities)]
    labels = nfd.labels(facts, findings)
    assert labels.get("status") == status
    assert labels.get("check.ecc_errors") == (status if status in ("warning", "error") else None)


def test_what_was_not_asked_says_nothing(facts):
    text = nfd.text(facts, checks.run(facts, only=["ecc_errors"]))
    assert text.startswith(f"# gputune {__version__}: 1 of {len(checks.names())} checks asked\n")
    passing = [found("temperature"), found("gpu_in_use")]
    assert nfd.labels(facts, passing).keys() == {"gpu", "torch", "version", "profile"}


def test_what_changes_while_programs_run_changes_no_label(facts):
    gpus = tuple(
        replace(gpu, memory_used_bytes=100 << 30, health=replace(gpu.health, temperature_celsius=90, processes=3))
        for gpu in facts.gpus
    )
    memory = replace(facts.memory, free_bytes=1, limit_free_bytes=1, shm_free_bytes=0)
    busy = replace(facts, gpus=gpus, memory=memory, cpu=replace(facts.cpu, quota_periods=100, throttled_periods=99))
    assert checks.run(busy) != checks.run(facts)
    assert nfd.text(busy, checks.run(busy)) == nfd.text(facts, checks.run(facts))


def test_gpus_of_two_kinds_have_no_one_name(facts):
    mixed = replace(facts, gpus=(facts.gpus[0], replace(facts.gpus[1], name="NVIDIA-TITAN-X-(Pascal)")))
    assert nfd.labels(mixed, [])["gpu"] == "mixed"


def test_without_a_gpu_and_without_torch_nothing_is_made_up():
    bare = facts_of("cpu-only")
    bare = replace(bare, libraries=replace(bare.libraries, torch=None))
    assert nfd.labels(bare, []).keys() == {"version", "profile"}


class TestTheProfileOfANode:
    def test_it_is_the_name_that_the_profile_has_in_the_cache(self, facts):
        kept = places.file_name(fingerprint(facts, "cuda:0"))
        assert nfd.labels(facts, [])["profile"] + ".yaml" == kept
        assert kept.startswith("nvidia-h200-")

    def test_a_long_name_of_a_gpu_keeps_the_digest(self, facts):
        long = replace(facts, gpus=tuple(replace(gpu, name="A very long name " * 9) for gpu in facts.gpus))
        label = nfd.labels(long, [])["profile"]
        assert len(label) == 63
        assert label[-12:] == places.file_name(fingerprint(long, "cuda:0"))[-17:-5]

    @pytest.mark.slow
    def test_so_it_is_here(self):
        from gputune import facts

        host = Host()
        assert nfd.labels(facts.read(host), [])["profile"] + ".yaml" == places.file_name(local_fingerprint(host))
