"""Runs in any interpreter and reports, as JSON, where its packages are installed.

Standard library only. `python _site_answers.py FD` writes one JSON object to descriptor FD.
"""

import json
import os
import site
import sys
import sysconfig


def main(descriptor: int) -> None:
    folder = sysconfig.get_paths()["purelib"]
    folders = site.getsitepackages() if hasattr(site, "getsitepackages") else [folder]
    # Debian's own Python has a purelib folder from which it reads no .pth files.
    if folder not in folders:
        folder = folders[0]
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"version": list(sys.version_info[:2]), "folder": folder}, file)


if __name__ == "__main__":
    main(int(sys.argv[1]))
