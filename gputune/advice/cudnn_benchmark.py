"""Whether cuDNN's own search certainly gains a tenth in a convnet's steps, without much more memory."""

from gputune.advice import Choice, Facts, Measurements
from gputune.advice._evidence import NOT_MEASURED, choose, first, no_gain, of_device, range_text, unmeasured
from gputune.advice._training import MOST_MEMORY, WORTH_SEARCH, search_gain, search_memory
from gputune.advice._training_rows import BENCH

WORTH = WORTH_SEARCH


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if not of_device(measurements):
        return choose(False, "it concerns GPUs only")
    gain, memory = search_gain(measurements, "convnet"), search_memory(measurements, "convnet")
    if memory is not None and memory > MOST_MEMORY:
        return choose(False, f"it takes {memory:.3g} times the peak memory of a convnet's steps", None, BENCH)
    if gain is None:
        return unmeasured(False, NOT_MEASURED)
    taken = first(measurements, BENCH, "search_time", network="convnet")
    cost = f", the first of which took {taken.median:.3g} s," if taken else ""
    what = f"steps of a convnet with cuDNN's own search{cost} ran {range_text(gain)} as fast as with torch's default"
    if memory is not None:
        what += f", with {memory:.3g} times the peak memory"
    why = ""
    if gain.verdict != "gain":
        why = no_gain(gain)
    elif gain.low <= WORTH_SEARCH:
        why = "not certain to gain the tenth that a search is worth"
    elif memory is None:
        why = "its peak memory is not known"
    return choose(not why, f"{why}: {what}" if why else what, gain, BENCH)
