"""Runs in the interpreter that is asked about: where its packages are, as JSON.

Standard library only. `python _site_answers.py FD` writes one JSON object to descriptor FD.
"""

import json
import os
import site
import sys
import sysconfig


def main(descriptor: int) -> None:
    folder = sysconfig.get_paths()["purelib"]
    known = site.getsitepackages() if hasattr(site, "getsitepackages") else [folder]
    # Debian's own Python names a folder for packages from which it reads no .pth files.
    read = [folder, *known] if folder in known else [*known, folder]
    with os.fdopen(descriptor, "w") as file:
        json.dump({"version": list(sys.version_info[:2]), "folder": read[0]}, file)


if __name__ == "__main__":
    main(int(sys.argv[1]))
