"""Write anew what follows from the code: `python tests/rederive.py`, in a clone with gputune's requirements
installed.

Each shipped profile comes from its own measurements and its machine's recorded facts, each golden report from its
report, and the examples that gputune prints from its commands. `git diff` then shows what a change of the code means
for them.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent


def profiles() -> Iterator[tuple[Path, str]]:
    """Each shipped profile's path and its new text."""
    from test_recommend import PROFILES, rederived

    from gputune.profile import dump

    for path in PROFILES:
        yield path, dump(rederived(path))


def reports() -> Iterator[tuple[Path, str]]:
    """Each golden report's path and its new text, 80 columns wide."""
    from answers import PROFILES, golden
    from report.test_terminal import GOLDEN, REPORTS

    os.environ["COLUMNS"] = "80"
    for name, report in REPORTS.items():
        yield GOLDEN / name, report()
    for name in PROFILES:
        yield GOLDEN / f"answer-{name}.txt", golden(name)


def examples() -> Iterator[tuple[Path, str]]:
    """Each printed example's path and its new text."""
    from printed import files

    return files()


def main() -> None:
    sys.path[:0] = [str(TESTS), str(TESTS.parent)]  # this clone's gputune, wherever another one is installed
    for derived in (profiles, reports, examples):  # the reports show the profiles
        for path, text in derived():
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
                print(f"changed: {path.relative_to(TESTS.parent)}")


if __name__ == "__main__":
    main()
