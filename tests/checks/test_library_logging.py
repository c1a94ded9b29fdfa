import pytest
from recorded import found

from gputune.checks import library_logging


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUBLAS_LOGINFO_DBG", "1"),
        ("CUBLASLT_LOG_LEVEL", "2"),
        ("CUBLASLT_LOG_MASK", "2"),
        ("CUDNN_LOGINFO_DBG", "1"),
        ("CUDNN_LOGLEVEL_DBG", "3"),
        ("CUDNN_FRONTEND_LOG_INFO", "1"),
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_DEBUG", "info"),
        ("NCCL_DEBUG", "ABORT"),
        ("NCCL_DEBUG", "TRACE"),
        ("TORCH_DISTRIBUTED_DEBUG", "INFO"),
        ("TORCH_DISTRIBUTED_DEBUG", "Detail"),
    ],
)
def test_a_log_that_is_left_on_is_a_warning(name, value):
    [one] = found(library_logging, environ={name: value})
    assert (one.severity, one.subject) == ("WARNING", name)
    assert f"{name}={value}" in one.message
    assert one.remedy == f"unset {name}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUBLAS_LOGINFO_DBG", "0"),
        ("CUBLASLT_LOG_LEVEL", "0"),
        ("CUBLASLT_LOG_LEVEL", "1"),
        ("CUBLASLT_LOG_MASK", "0"),
        ("CUBLASLT_LOG_MASK", "1"),
        ("CUDNN_LOGINFO_DBG", "0"),
        ("CUDNN_LOGLEVEL_DBG", ""),
        ("CUDNN_LOGLEVEL_DBG", "0"),
        ("CUDNN_LOGLEVEL_DBG", "1"),
        ("CUDNN_LOGLEVEL_DBG", "2"),
        ("CUDNN_FRONTEND_LOG_INFO", "0"),
        ("NCCL_DEBUG", ""),
        ("NCCL_DEBUG", "warn"),
        ("NCCL_DEBUG", "VERSION"),
        ("NCCL_DEBUG", "WARN"),
        ("TORCH_DISTRIBUTED_DEBUG", "OFF"),
        ("TORCH_DISTRIBUTED_DEBUG", "off"),
    ],
)
def test_what_stays_quiet(name, value):
    assert [one.severity for one in found(library_logging, environ={name: value})] == ["OK"]


def test_each_has_a_finding_of_its_own():
    findings = found(
        library_logging, environ={"NCCL_DEBUG": "INFO", "CUBLASLT_LOG_LEVEL": "5", "CUDNN_LOGINFO_DBG": "0"}
    )
    assert [(one.subject, one.remedy) for one in findings] == [
        ("CUBLASLT_LOG_LEVEL", "unset CUBLASLT_LOG_LEVEL"),
        ("NCCL_DEBUG", "unset NCCL_DEBUG"),
    ]
