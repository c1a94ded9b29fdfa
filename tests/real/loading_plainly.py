"""A training script that keeps its workers' queues full: `loading_plainly.py FILE.py:CALLABLE WORKERS PREFETCH_FACTOR`.
JSON: the error that it ended with, or an empty text.
"""

import json
import sys
import time

from gputune.benches._user_code import call

SHOWN = 300


def main(name, workers, prefetch_factor):
    from torch.utils.data import DataLoader

    options = {"num_workers": int(workers), "prefetch_factor": int(prefetch_factor), "timeout": 20}
    try:
        for number, batch in enumerate(DataLoader(call(name), batch_size=32, **options)):
            if number < 3:
                time.sleep(1.0)  # until all that may be in flight is
            held = batch
            if number == 8 * int(workers):
                break
        del held
    except RuntimeError as error:
        return str(error)[-SHOWN:]
    return ""


if __name__ == "__main__":
    print(json.dumps({"error": main(*sys.argv[1:])}))
