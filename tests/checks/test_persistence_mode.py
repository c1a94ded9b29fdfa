from recorded import found

from gputune.checks import persistence_mode


def test_off_is_a_warning_that_the_host_can_mend():
    findings = found(persistence_mode, "nvidia-h200-x8", gpu={"PersistenceMode": 0}, gpu_index=3)
    assert [one.subject for one in findings if one.severity == "WARNING"] == ["GPU 3"]
    assert "persistence mode is off" in findings[3].message
    assert findings[3].remedy.startswith("sudo nvidia-smi -i 00000000:00:09.0 -pm 1  # on the host, as root; ")
    assert "nvidia-persistenced" in findings[3].remedy


def test_a_consumer_gpu_does_without():
    [one] = found(persistence_mode, gpu={"PersistenceMode": 0, "Brand": 5})
    assert one.severity == "NOT_APPLICABLE"
