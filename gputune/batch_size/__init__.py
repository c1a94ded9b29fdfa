"""The search for a batch size: the largest that fits into memory with a margin, and the one that trains fastest.

Each batch is tried in a bench process, which may run out of memory, be killed for it, hang or fail: that is an answer
too, and a fresh process goes on. What the answer names was tried once more in a fresh process.
"""

from gputune.batch_size.search import search
from gputune.batch_size.trials import BatchSizeRequest, BatchSizes

__all__ = ["BatchSizeRequest", "BatchSizes", "search"]
