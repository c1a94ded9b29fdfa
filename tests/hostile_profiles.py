"""Files that somebody might hand to gputune for a profile: for each its content or maker, and what is said of it.

`REFUSED` and `MANY_FAULTS` are no profiles or bad ones, `READ` is valid, however strange. Nearly every text is a whole
profile except for one thing, so that nothing else can be what is refused.
"""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import yaml

from gputune.profile.limits import MOST_BYTES

Content = bytes | Callable[[Path], object]
"""The bytes of a file, or a function that puts something else in its place."""

PARTS = {
    "schema": "1",
    "created": "'2026-11-21T12:00:00Z'",
    "gputune": "0.1.0",
    "fingerprint": "{gpu: NVIDIA H200, gpu_count: 1, torch: 2.11.0, cpu_budget: 16}",
    "settings": "{omp_threads: {value: 4, gain: 1.5, interval: [1.4, 1.6], reason: it was faster, evidence: [x]}}",
    "families": "{convnet: {channels_last: {value: true, reason: it was faster}}}",
    "measurements": "[{bench: precision, metric: throughput, unit: TFLOP/s, samples: [405.0], device: 'cuda:0'}]",
    "findings": "[{check: shm_size, severity: WARNING, message: it is small, remedy: give it more}]",
    "gaps": "[{fact: cpu.quota, reason: not readable}]",
}


def whole(**parts: str) -> bytes:
    """A valid profile, with other text for some of its parts."""
    return "".join(f"{name}: {text}\n" for name, text in (PARTS | parts).items()).encode()


def but(text: str) -> bytes:
    """A valid profile, and `text` after it."""
    return whole() + text.encode()


def setting(name: str, value: str) -> bytes:
    return whole(settings=f"{{{name}: {{value: {value}, reason: x}}}}")


def choice(more: str) -> bytes:
    return whole(settings=f"{{omp_threads: {{value: 4, reason: x, {more}}}}}")


def listed(element: str, times: int) -> str:
    return "[" + f"{element}," * times + "]"


def numbered(name: str, rest: str, times: int) -> str:
    return "".join(f"{name}{number}{rest}" for number in range(times))


def samples(text: str) -> bytes:
    return whole(measurements=f"[{{bench: b, metric: m, unit: u, device: cpu, samples: {text}}}]")


PROGRAM = {
    "entry": "train.py",
    "created": "'2026-11-21T12:00:00Z'",
    "fingerprint": "{gpu: NVIDIA H200, torch: 2.11.0}",
    "models": "[{class_name: ResNet, digest: 0123456789abcdef}]",
    "input_shapes": "[[64, 3, 224, 224]]",
    "world_size": "1",
    "settings": "{amp_dtype: {value: bfloat16, reason: it was faster}}",
    "by_numerics": "{exact: {}, mixed: {amp_dtype: bfloat16}}",
    "measurements": "[{bench: program, metric: throughput, unit: steps/s, samples: [1.0], device: 'cuda:0'}]",
}


def program(**parts: str) -> str:
    """A valid program, with other text for some of its parts."""
    return "{" + ", ".join(f"{name}: {text}" for name, text in (PROGRAM | parts).items()) + "}"


def trained(**parts: str) -> bytes:
    """A valid profile with two programs, the first of which has other text for some of its parts."""
    return but(f"programs: [{program(**parts)}, {program()}]\n")


def link(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


def unreadable(path: Path) -> None:
    path.write_bytes(whole())
    path.chmod(0)


def writable(path: Path) -> None:
    path.write_bytes(whole())
    path.chmod(0o666)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 * 2**30)


FILES: dict[str, tuple[Content, str]] = {
    "none at all": (lambda path: None, "cannot be read: No such file or directory"),
    "a folder": (Path.mkdir, "is a directory"),
    "a named pipe": (os.mkfifo, "is not a regular file"),
    "a socket": (lambda path: os.mknod(path, stat.S_IFSOCK | 0o600), "cannot be read: No such device or address"),
    "a device without end": (link("/dev/zero"), "is not a regular file"),
    "random numbers": (link("/dev/urandom"), "is not a regular file"),
    "a dangling link": (link("nowhere"), "cannot be read: No such file or directory"),
    "a link to itself": (link("profile.yaml"), "cannot be read: Too many levels of symbolic links"),
    "a file whose reading fails": (link("/proc/self/mem"), "cannot be read: Input/output error"),
    "a file without permission": (unreadable, "cannot be read: Permission denied"),
    "a file that everybody may write": (writable, "can be written by everybody"),
    "a byte too many": (whole().ljust(MOST_BYTES + 1, b"#"), "is larger than 1024 KiB"),
    "10 GB of nothing": (sparse, "is larger than 1024 KiB"),
}

BYTES: dict[str, tuple[Content, str]] = {
    "nothing": (b"", "is empty"),
    "comments": (b"#\n" * 500_000, "is empty"),
    "zero bytes": (b"\0" * 1000, "not YAML: "),
    "a zero byte after it": (but("\0"), "not YAML: "),
    "a program": (b"\x7fELF\x02\x01\x01" + bytes(9), "not YAML: "),
    "a gzip file": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "is not UTF-8 text (byte 1)"),
    "a pickle": (b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.", "is not UTF-8 text (byte 0)"),
    "every byte": (bytes(range(256)), "is not UTF-8 text (byte 128)"),
    "a broken end of UTF-8": (whole() + "# é".encode()[:-1], "is not UTF-8 text"),
    "overlong UTF-8": (whole() + b"# \xc0\xaf", "is not UTF-8 text"),
    "a surrogate": (whole() + b"# \xed\xa0\x80", "is not UTF-8 text"),
    "UTF-16": (whole().decode().encode("utf-16"), "is not UTF-8 text (byte 0)"),
    "UTF-16 without a mark": (whole().decode().encode("utf-16-le"), "not YAML: "),
    "UTF-32": (whole().decode().encode("utf-32"), "is not UTF-8 text (byte 0)"),
    "a byte order mark inside": (whole().replace(b"gaps", b"\xef\xbb\xbfgaps"), "line 9: "),
    "an HTML page": (b"<!DOCTYPE html>\n<html><body>404</body></html>\n", "is not a profile"),
    "one secret line": (b"hf_aVerySecretToken\n", "is not a profile: a mapping"),
}

YAML: dict[str, tuple[Content, str]] = {
    "a million lists in one another": (whole(gaps="[" * 1_000_000), "line 9: nested more than 16 deep"),
    "250,000 mappings in one another": (whole(gaps="{a: " * 250_000), "line 9: nested more than 16 deep"),
    "500,000 keys as keys": (b"? " * 500_000, "line 1: "),
    "200,000 values": (whole(gaps=listed(listed("1", 1000), 200)), "line 9: more than 131072 keys and values"),
    "200,000 values in mappings": (
        whole(gaps=listed("{" + numbered("k", ": 1,", 100) + "}", 1000)),
        "line 9: more than 131072 keys and values",
    ),
    "180,000 quoted texts": (whole(gaps=listed(listed("'x'", 900), 200)), "line 9: more than 131072 keys and values"),
    "a billion laughs": (
        but("a: &a [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1 or ''}, *a{n - 1 or ''}]\n" for n in range(1, 40))),
        "line 10: anchors and aliases are not allowed",
    ),
    "a list that holds itself": (whole(gaps="&a [*a]"), "line 9: anchors and aliases are not allowed"),
    "a tag that runs a command": (whole(gaps="!!python/object/apply:os.system [id]"), "line 9: tags are not allowed"),
    "a tag that names a function": (whole(created="!!python/name:os.system"), "line 2: tags are not allowed"),
    "a tag by another name": (
        b"%TAG ! tag:yaml.org,2002:python/object/apply:\n---\n" + whole(gaps="!os.system [id]"),
        "line 11: tags are not allowed",
    ),
    "a tag that steers a terminal": (whole(gaps="!<%1B%5B2J> []"), "line 9: tags are not allowed (\\x1b[2J)"),
    "a harmless tag": (whole(schema="!!int 1"), "line 1: tags are not allowed"),
    "a YAML of the future": (b"%YAML 9.0\n---\n" + whole(), "line 1: found incompatible YAML document"),
    "a merge": (whole(gaps="[{<<: {fact: x}, reason: x}]"), "line 9: merges are not allowed"),
    "a key twice": (but("schema: 1\n"), "line 10: the key 'schema' occurs twice"),
    "two documents": (but("---\n") + whole(), "line 10: one document is expected, and another starts"),
    "text after the end": (but("...\nschema: 1\n"), "line 11: did not find expected <document start>"),
    "a list as a key": (but("? [a, b]\n: 1\n"), "line 10: a key must be text, not []"),
    "a number as a key": (but("1: 1\n"), "line 10: a key must be text, not 1"),
    "a tab": (b"\t" + whole(), "line 1: "),
    "a quote without end": (whole(gaps="'"), "line 10: found unexpected end of stream"),
    "a character that is none": (whole(created='"\\uD800"'), "line 2: "),
    "cut off within a row": (whole()[:-20], "line "),
    "cut off after a row": (b"".join(whole().splitlines(keepends=True)[:-1]), "gaps: this key is missing"),
}

DOCUMENT: dict[str, tuple[Content, str]] = {
    "no schema": (whole().split(b"\n", 1)[1], "schema: the number 1 expected, the key is missing"),
    "a schema of the future": (whole(schema="2"), "schema 2 was made by a newer gputune"),
    "the largest schema": (whole(schema="9" * 19), f"schema {'9' * 19} was made by a newer gputune"),
    "a schema of 4,000 digits": (whole(schema="1" * 4000), 'schema: the number 1 expected, "111'),
    "a schema of 100,000 digits": (whole(schema="1" * 100_000), "line 1: a text of more than 4096 characters"),
    "schema true": (whole(schema="true"), "schema: the number 1 expected, true given"),
    "schema 1.0": (whole(schema="1.0"), "schema: the number 1 expected, 1.0 given"),
    "schema '1'": (whole(schema="'1'"), 'schema: the number 1 expected, "1" given'),
    "an environment": (but("environment: {LD_PRELOAD: /tmp/x.so}\n"), "environment: there is no such key"),
    "an environment of a setting": (
        choice("environ: {PATH: /tmp}"), "settings.omp_threads.environ: there is no such key"
    ),
    "a phase of its own": (choice("phase: launch"), "settings.omp_threads.phase: there is no such key"),
    "a claim to be harmless": (choice("numerics: exact"), "settings.omp_threads.numerics: there is no such key"),
    "a command": (but("command: [rm, -rf, /]\n"), "command: there is no such key"),
    "a key that clears the screen": (but('"\\e[2J": 1\n'), "\\x1b[2J: there is no such key"),
    "a key that names the window": (but('"\\e]0;x\\a": 1\n'), "\\x1b]0;x\\x07: there is no such key"),
    "a key of several lines": (but('"a\\nb\\r\\u2028c": 1\n'), "a\\nb\\r\\u2028c: there is no such key"),
    "a key of an 8-bit terminal": (but('"\\x9b2J": 1\n'), "\\x9b2J: there is no such key"),
    "a key from right to left": (but('"\\u202Egnp": 1\n'), "\\u202egnp: there is no such key"),
    "a key of 100,000 characters": (but("? " + "k" * 100_000 + "\n: 1\n"), "line 10: a text of more than 4096"),
    "1,900 keys": (but(numbered("k", ": 1\n", 1900)), "k0: there is no such key"),
    "20,000 keys": (but(numbered("k", ": 1\n", 20_000)), "line 2001: more than 2000 entries in one place"),
    "a list for a mapping": (whole(settings="[]"), "settings: a mapping expected, [] given"),
    "a text of 250,000 lines": (whole(gaps="|\n" + "  x\n" * 250_000), "line 9: a text of more than 4096 characters"),
    "a text of 2,000 lines": (whole(gaps="|\n" + "  x\n" * 2000), 'gaps: a list expected, "x\\nx'),
    "no number as a gain": (choice("gain: .nan"), 'settings.omp_threads.gain: a number or null expected, ".nan" given'),
    "an interval of three": (choice("interval: [1.0, 2.0, 3.0]"), "settings.omp_threads.interval"),
    "no samples": (samples("[]"), "measurements.0: a measurement has at least one sample"),
    "a word after 31 samples": (samples(listed("1", 31)[:-1] + "x]"), "measurements.0.samples.31: a number expected"),
    "129 samples": (samples(listed("1", 129)), "measurements.0.samples: at most 128 expected, 129 given"),
    "100,000 samples": (samples(listed("1", 100_000)), "line 7: more than 2000 entries in one place"),
    "65 kinds of network": (
        whole(families="{" + numbered("f", ": {},", 65) + "}"), "families: at most 64 kinds of network"
    ),
    "an infinite sample": (samples("[-.inf]"), 'measurements.0.samples.0: a number expected, "-.inf" given'),
}  # fmt: skip

SETTINGS: dict[str, tuple[Content, str]] = {
    **{
        f"the setting {name!r}": (setting(f"'{name}'", "1"), f"settings.{name}: there is no such setting")
        for name in ("__class__", "_tf32", "os.system", "../amp_dtype", "LD_PRELOAD", "", "OMP_THREADS", "$(id)")
    },
    "a setting that steers a terminal": (
        setting('"\\e[31m\\n"', "1"), "settings.\\x1b[31m\\n: there is no such setting"
    ),
    "a setting of 100,000 characters": (whole(settings="{? " + "k" * 100_000 + " : {}}"), "line 5: a text of more"),
    **{
        f"the switch {value}": (setting("compile", value), "settings.compile.value: true or false expected")
        for value in ("yes", "True", "1")
    },
    **{
        f"the number {value}": (setting("omp_threads", value), "settings.omp_threads.value: a whole number")
        for value in ("0x10", "1:30", "4.0", "2026-11-21", ".nan", "1e999", "'$(reboot)'", '"4\\nPATH=/tmp"')
    },
    **{
        f"{value} workers": (setting("dataloader_workers", value), "settings.dataloader_workers.value: a number from 0")
        for value in ("-1", "1000000", "9223372036854775808")
    },
    "a number of 4,000 digits": (setting("omp_threads", "1" * 4000), "settings.omp_threads.value: a whole number"),
    "padding of no dtype": (setting("dimension_multiple", "{int9: 8}"), "settings.dimension_multiple.value"),
    "padding to nothing": (
        setting("dimension_multiple", "{bfloat16: 0}"), "settings.dimension_multiple.value: a number from 1"
    ),
}  # fmt: skip

PROGRAMS: dict[str, tuple[Content, str]] = {
    "a mapping of programs": (but("programs: {}\n"), "programs: a list expected, {} given"),
    "no programs": (but("programs: null\n"), "programs: a list expected, null given"),
    "the name of a program": (but("programs: [train.py]\n"), 'programs.0: a mapping expected, "train.py" given'),
    "a program in pieces": (but("programs: [{entry: train.py}]\n"), "programs.0.created: this key is missing"),
    "a program with a command": (trained(command="id"), "programs.0.command: there is no such key"),
    "65 programs": (but(f"programs: {listed(program(), 65)}\n"), "programs: at most 64 expected, 65 given"),
    **{
        f"the program {entry[:20]}": (
            trained(entry=entry), "programs.0.entry: a name of 1 to 255 characters without a slash expected"
        )
        for entry in ("''", "/usr/bin/train.py", "../train.py", "a/b", "/", "x" * 256)
    },
    "a dataset with a long name": (trained(dataset="x" * 256), "programs.0.dataset: a name of at most 255 characters"),
    **{
        f"the layers {layers[:20]}": (
            trained(models=f"[{{class_name: x, digest: 0123456789abcdef, layers: {layers}}}]"),
            "programs.0.models.0",
        )
        for layers in ("[]", "{x: 1}", "{'0000': 0}", "{'0000': x}", str({f"a{n:03}": 1 for n in range(129)}))
    },
    **{
        f"the digest {digest}": (
            trained(models=f"[{{class_name: x, digest: '{digest}'}}]"), "programs.0.models.0: a model's digest is"
        )
        for digest in ("", "0123456789ABCDEF", "0123456789abcdeg", "0" * 17, "0123456789abcdef ")
    },
    "a number as a digest": (
        trained(models=f"[{{class_name: x, digest: {'1' * 16}}}]"), "programs.0.models.0.digest: text expected, 111"
    ),
    "33 models": (
        trained(models=listed("{class_name: x, digest: 0123456789abcdef}", 33)),
        "programs.0.models: at most 32 expected, 33 given",
    ),
    "33 shapes": (trained(input_shapes=listed("[1]", 33)), "programs.0.input_shapes: at most 32 expected, 33 given"),
    "nine dimensions": (
        trained(input_shapes=f"[[1], {listed('1', 9)}]"), "programs.0.input_shapes.1: at most 8 expected, 9 given"
    ),
    "a negative dimension": (
        trained(input_shapes="[[1, -1]]"), "programs.0.input_shapes.0: no negative number expected, -1 given"
    ),
    "half a dimension": (trained(input_shapes="[[0.5]]"), "programs.0.input_shapes.0.0: a whole number expected"),
    "no process": (trained(world_size="0"), "programs.0.world_size: a number from 1 expected, 0 given"),
    "129 samples of a program": (
        trained(measurements=f"[{{bench: b, metric: m, unit: u, device: cpu, samples: {listed('1', 129)}}}]"),
        "programs.0.measurements.0.samples: at most 128 expected, 129 given",
    ),
    "a program of 36 KiB": (
        trained(settings=f"{{amp_dtype: {{value: null, reason: x, evidence: {listed('x' * 4000, 9)}}}}}"),
        "programs.0: takes 36 KiB, and 32 KiB is the most",
    ),
    "a program's setting that is none": (
        trained(settings="{LD_PRELOAD: {value: x, reason: x}}"),
        "programs.0.settings.LD_PRELOAD: there is no such setting",
    ),
    "a program's value that is none": (
        trained(settings="{omp_threads: {value: 0, reason: x}}"),
        "programs.0.settings.omp_threads.value: a number from 1 to 4096 expected, 0 given",
    ),
    "a level that is none": (
        trained(by_numerics="{fast: {}}"),
        "programs.0.by_numerics.fast: 'exact', 'rounding', 'tf32' or 'mixed' expected",
    ),
    "a list of levels": (trained(by_numerics="[exact]"), "programs.0.by_numerics: a mapping expected"),
    "a list of values": (trained(by_numerics="{exact: []}"), "programs.0.by_numerics.exact: a mapping expected"),
    "a setting of a level that is none": (
        trained(by_numerics="{mixed: {no_such: 1}}"), "programs.0.by_numerics.mixed.no_such: there is no such setting"
    ),
    "a value of a level that is none": (
        trained(by_numerics="{mixed: {amp_dtype: float64}}"),
        "programs.0.by_numerics.mixed.amp_dtype: 'bfloat16' or 'float16' or null expected, \"float64\" given",
    ),
    "a value of a level beyond its limits": (
        trained(by_numerics="{mixed: {dimension_multiple: {tf32: 0}}}"),
        "programs.0.by_numerics.mixed.dimension_multiple: a number from 1 to 1024 expected, 0 given",
    ),
    **{
        f"{name} that claims to be {level}": (
            trained(by_numerics=f"{{{level}: {{{name}: {value}}}}}"),
            f"programs.0.by_numerics.{level}.{name}: its effect on results is {effect}, which is beyond {level}",
        )
        for level, name, value, effect in (
            ("exact", "amp_dtype", "float16", "mixed"), ("tf32", "amp_dtype", "bfloat16", "mixed"),
            ("rounding", "matmul_precision", "tf32", "tf32"), ("exact", "omp_threads", "4", "rounding"),
        )
    },
}  # fmt: skip

OTHER_VERSIONS: dict[str, tuple[Content, str]] = {
    "a version that is none": (whole(gputune="new"), 'gputune: a version such as '),
    "a version that steers a terminal": (whole(gputune='"\\e[2J"'), 'gputune: a version such as '),
    "a number as a version": (whole(gputune="0.3"), "gputune: text expected, 0.3 given"),
    "a newer file that misses a part": (
        whole(gputune="9.0.0").replace(b"gaps:", b"holes:"), "gaps: this key is missing"
    ),
    "a newer file with a fault in its shape": (
        whole(gputune="9.0.0", settings="[]"), "settings: a mapping expected, [] given"
    ),
}  # fmt: skip


def json_but(text: str) -> bytes:
    """A valid profile as JSON, with `text` before its first key."""
    return ("{" + text + json.dumps(yaml.safe_load(whole()))[1:]).encode()


JSON: dict[str, tuple[Content, str]] = {
    "JSON cut off": (json_but("")[:-20], "line 1: not JSON: "),
    "JSON with a comment": (json_but("// x\n"), "line 1: not JSON: "),
    "two JSON documents": (json_but("") * 2, "line 1: not JSON: Extra data"),
    "YAML's flow style": (b"{schema: 1}", "line 1: not JSON: "),
    "a JSON key twice": (json_but('"gaps": [], '), "the key 'gaps' occurs twice"),
    "a JSON key twice, hidden by an escape": (json_but('"g\\u0061ps": [], '), "the key 'gaps' occurs twice"),
    **{
        f"{number if len(number) < 100 else '500,000 digits'} in JSON": (json_but(f'"x": {number}, '), fault)
        for number, fault in {
            "NaN": "NaN is not a finite number", "-Infinity": "-Infinity is not a finite number",
            "1e999": "inf is not a finite number", "1" * 20: "a whole number of more than 19 digits",
            "1" * 500_000: "a whole number of more than 19 digits", "01": "line 1: not JSON: ",
            "0x1": "line 1: not JSON: ",
        }.items()
    },
    "half a character in JSON": (json_but('"x": "\\ud800", '), "a text with an unpaired surrogate"),
    "a merge in JSON": (json_but('"<<": {}, '), "merges are not allowed"),
    "a text of a million characters in JSON": (
        json_but(f'"x": "{"x" * 1_000_000}", '), "a text of more than 4096 characters"
    ),
    "a key of a million characters in JSON": (
        json_but(f'"{"x" * 1_000_000}": 1, '), "a text of more than 4096 characters"
    ),
    "a million JSON lists in one another": (json_but('"x": ' + "[" * 1_000_000), "nested more than 16 deep"),
    "150,000 JSON mappings in one another": (json_but('"x": ' + '{"a":' * 150_000), "nested more than 16 deep"),
    "500 whole JSON lists in one another": (json_but(f'"x": {"[" * 500 + "]" * 500}, '), "nested more than 16 deep"),
    "500,000 JSON numbers": (json_but(f'"x": [{"1," * 500_000}1], '), "more than 2000 entries in one place"),
    "300,000 JSON mappings": (json_but(f'"x": [{"{}," * 300_000}1], '), "more than 2000 entries in one place"),
    "200,000 JSON values": (
        json_but(f'"x": [{", ".join(["[" + "1," * 999 + "1]"] * 200)}], '), "more than 131072 keys and values"
    ),
    "no JSON object": (b" []", "is not a profile"),
}  # fmt: skip

REFUSED = FILES | BYTES | YAML | DOCUMENT | SETTINGS | PROGRAMS | OTHER_VERSIONS | JSON

MANY_FAULTS: dict[str, tuple[Content, str]] = {
    "340,000 rows without a key": (
        whole(measurements=listed("{}", 340_000)), "line 7: more than 2000 entries in one place"
    ),
    "2,000 rows without a key": (whole(measurements=listed("{}", 2000)), "measurements.0.bench: this key is missing"),
    "2,000 gaps without a key": (whole(gaps=listed("{}", 2000)), "gaps.0.fact: this key is missing"),
    "31 wrong samples in each of 1,500 rows": (
        whole(measurements=listed("{samples: " + listed("x", 31) + "}", 1500)),
        "measurements.0.bench: this key is missing",
    ),
    "a wrong value after 63 families": (
        whole(families="{" + numbered("f", ": {compile: {value: true, reason: x}},", 63) + "g: {compile: {value: x}}}"),
        "families.g.compile.value: true or false expected",
    ),
}  # fmt: skip
"""With the first of what is wrong."""

ESCAPES = '"\\e[31m\\e]0;x\\a\\x9b2J\\u202E[red]\\n\\r\\u2028x"'

READ: dict[str, Content] = {
    "the whole": whole(),
    "no more than it takes": whole(
        fingerprint="{}", settings="{}", families="{}", measurements="[]", findings="[]", gaps="[]"
    ),
    "JSON": json_but(""),
    "JSON after a byte order mark and a line": b"\xef\xbb\xbf\n" + json_but(""),
    "the largest JSON": json_but("").ljust(MOST_BYTES),
    "a byte order mark": b"\xef\xbb\xbf" + whole(),
    "Windows' line ends": whole().replace(b"\n", b"\r\n"),
    "programs": trained(),
    "torch's defaults, which are harmless": trained(
        by_numerics="{exact: {amp_dtype: null, compile: false, matmul_precision: ieee, cudnn_tf32: true}}"
    ),
    "as many programs as a profile holds": but(f"programs: {listed(program(), 64)}\n"),
    "the largest": whole().ljust(MOST_BYTES, b"#"),
    "128 samples": samples(listed("1", 128)),
    "text that steers a terminal": whole().replace(b"NVIDIA H200", ESCAPES.encode()).replace(
        b"it was faster", ESCAPES.encode()
    ),
    "programs that steer a terminal": trained(
        entry=ESCAPES,
        created=ESCAPES,
        models=f"[{{class_name: {ESCAPES}, digest: 0123456789abcdef}}]",
        settings=f"{{amp_dtype: {{value: bfloat16, reason: {ESCAPES}}}}}",
    ),
    "names that steer a terminal": whole(
        families=f"{{{ESCAPES}: {{compile: {{value: true, reason: x}}}}}}",
        measurements=f"[{{bench: conv, metric: m, unit: {ESCAPES}, samples: [1], device: cpu, "
        f"params: {{network: {ESCAPES}}}}}]",
        findings=f"[{{check: {ESCAPES}, severity: ERROR, message: {ESCAPES}, remedy: {ESCAPES}, subject: {ESCAPES}}}]",
        gaps=f"[{{fact: {ESCAPES}, reason: {ESCAPES}}}]",
    ),
}  # fmt: skip
