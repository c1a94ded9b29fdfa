from recorded import RecordedHost, found

from gputune.checks import anomaly_detection


def finding(anomaly):
    flags = {**RecordedHost().torch["flags"], "anomaly_detection": anomaly}
    [only] = found(anomaly_detection, torch={"flags": flags})
    return only


def test_on_is_a_warning():
    one = finding(True)
    assert one.severity == "WARNING"
    assert "anomalies" in one.message
    assert one.remedy == "torch.autograd.set_detect_anomaly(False)"


def test_off():
    assert finding(False).severity == "OK"


def test_a_torch_that_does_not_tell_is_unknown():
    assert finding(None).severity == "UNKNOWN"
