"""The profile: what a machine was found to be, what was measured on it, and what follows.

Read strictly (`load`), written atomically (`save`). The worst that a hostile profile can do is make a job slow or less
precise: it names settings of a closed list, with typed values, and nothing else in it is ever acted on.
"""

from gputune.profile.document import SCHEMA, Confirmation, Fingerprint, Guard, Profile, Program, fingerprint, now
from gputune.profile.keeping import differing_settings, representative_index, with_programs
from gputune.profile.reading import checked_text, load, parse
from gputune.profile.writing import dump, dump_json, save

__all__ = [
    "SCHEMA", "Confirmation", "Fingerprint", "Guard", "Profile", "Program", "checked_text", "differing_settings",
    "dump", "dump_json", "fingerprint", "load", "now", "parse", "representative_index", "save",
    "with_programs",
]  # fmt: skip
