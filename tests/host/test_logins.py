"""No login is left in a text, whatever stands around it; and what is no login stays."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.host.logins import without_logins


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("http://ann:s3cret@proxy:3128/simple", "http://proxy:3128/simple"),
        ("git+https://s3cret@example.org/a/b.git@main", "git+https://example.org/a/b.git@main"),
        ("https://:s3cret@example.org", "https://example.org"),
        ("no route to 'http://ann:s3cret@proxy:3128'.", "no route to 'http://proxy:3128'."),
        ("ann:s3cret@proxy:3128", "proxy:3128"),
        ("ann:s3c@s3cret@proxy", "proxy"),
        ("ann:s3cret==@proxy", "proxy"),
        ("http://ann:a/s3cret@proxy/x", "http://proxy/x"),
        ("http://ann:a?s3cret#@proxy/x", "http://proxy/x"),
        ("http://ann:12/s3cret@proxy/x", "http://proxy/x"),
        ("http://ann:s3cr", "http://..."),
        ("http://ann:a://s3cret@proxy", "http://...://proxy"),
        (r'{"a":"http:\/\/ann:s3cret@h\/x","b":"ann:s3cret@h"}', r'{"a":"http:\/\/h\/x","b":"h"}'),
        ("https://example.org/blob?sig=s3cret&se=1 is gone", "https://example.org/blob?... is gone"),
        ("https://example.org/cb#access_token=s3cret", "https://example.org/cb#..."),
        ("connect: host=db password=s3cret user=x", "connect: host=db password=... user=x"),
        ("{'Authorization': 'Bearer s3cret'}", "{'Authorization': 'Bearer ...'}"),
        ("HF_TOKEN=s3cret", "HF_TOKEN=..."),
        ("http://ann:p@a/s3cret@proxy/x", "http://proxy/x"),
        ("ann:a/s3cret@proxy/x", "proxy/x"),
        ("ann:a@b/s3cret@proxy", "proxy"),
        ("no route to https://ann:a s3cret@proxy/x now", "no route to https://... proxy/x now"),
        ("secret_key: s3cret", "secret_key: ..."),
        ("AWS_SECRET_KEY=s3cret x", "AWS_SECRET_KEY=... x"),
        ("PRIVATE_KEY: s3cret", "PRIVATE_KEY: ..."),
        ("AccountKey=s3cret==;", "AccountKey=..."),
        ("the signing key: s3cret", "the signing key: ..."),
        ("DB_PASS=s3cret", "DB_PASS=..."),
        ("Uid=x;Pwd=s3cret", "Uid=x;Pwd=..."),
        ('password="correct s3cret battery" x', 'password="..." x'),
        ('{"password": "correct s3cret", "b": 1}', '{"password": "...", "b": 1}'),
        (r'{"a": "password=\"a s3cret\" x"}', r'{"a": "password=\"...\" x"}'),
        ("password='a s3cret", "password='..."),
        ("password=a,s3cret;'s3cret x", "password=... x"),
        ("run --password s3cret x", "run --password ... x"),
        ("['--db-password', 's3cret', 'x']", "['--db-password', '...', 'x']"),
        ("hf_s3cretS3cretS3cret x", "... x"),
        ("ghp_s3cretS3cretS3cret", "..."),
        ("gho_s3cretS3cretS3cret", "..."),
        ("github_pat_s3cret_S3cretS3cret", "..."),
        ("'sk-proj-s3cretS3cretS3cret'", "'...'"),
        ("xoxb-12-34-s3cret", "..."),
        ("AKIAIOSFODNN7EXAMPLE", "..."),
        ("(eyJhbGci.eyJzdWIi.s3cr-et)", "(...)"),
    ],
)  # fmt: skip
def test_what_lets_others_in_is_cut(text: str, left: str) -> None:
    assert without_logins(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "http://proxy:3128/simple",
        "(http://[::1]:8080/x)",
        "https://github.com/pytorch/pytorch@main",
        "file:///usr/lib/libcuda.so.1",
        "RuntimeError: expected scalar type Float but found Half at train.py:12",
        "/lib:/usr/lib",
        "max_split_size_mb:128,expandable_segments:True",
        "bypass=1, first pass: 12 ms, PWD=/home/x OLDPWD=/x",
        "task-0123456789abcdefghij hf_hub_enable_hf_transfer eyJhbGci.x",
        "the tokenizer: none, 3 tokens: fine",
        "a@b",
    ],
)
def test_what_does_not_stays(text: str) -> None:
    assert without_logins(text) == text


_PARTS = st.text(alphabet=st.characters(blacklist_categories=("Cs", "Z", "Cc"), blacklist_characters="\\"), max_size=12)


_USERS = st.text(alphabet="abcXYZ019._-%+~", max_size=8)


@given(before=st.text(max_size=20), user=_USERS, password=_PARTS, after=st.sampled_from(["", "/x", ":80/x y", "'"]))
def test_a_password_of_any_characters_is_cut_from_a_url(before: str, user: str, password: str, after: str) -> None:
    left = without_logins(f"{before} https://{user}:s3cret{password}@example.org{after}")
    assert "s3cret" not in left


@given(st.text(alphabet="ab:/@?#\\\"' .=", max_size=60))
def test_it_may_be_done_twice(text: str) -> None:
    once = without_logins(text)
    assert len(once) <= len(text) + 3 * text.count(":")
    assert "://a:b@" not in once


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "@",
        "://",
        "a:@",
        "://a:b@",
        "://!",
        "?",
        '"@',
        "password",
        "token = ",
        " ",
        ":a",
        'password="',
        r"token=\"",
        "--password ",
        "--",
        "sk-",
        "-eyJ",
        "eyJaaaaa.",
        "://a:b ",
    ],
)
def test_a_long_text_takes_time_in_proportion(part: str) -> None:
    before = time.process_time()
    without_logins("://!:" + part * ((1 << 17) // len(part)) + ":x")
    assert time.process_time() - before < 3, "where each character looks at all others it takes minutes"
