"""The process that benches run in: started, given requests and replaced by its parent, since any bench may kill it."""

from gputune.bench_process.context import BUDGETS, Batches, Budget, Context, MatmulShape, UserDataset

__all__ = ["BUDGETS", "Batches", "Budget", "Context", "MatmulShape", "UserDataset"]
