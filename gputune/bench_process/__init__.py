"""The process that benches run in: started, asked and replaced by its parent; it may die of any bench."""

from gputune.bench_process.context import BUDGETS, Batches, Budget, Context, MatmulShape, UserDataset

__all__ = ["BUDGETS", "Batches", "Budget", "Context", "MatmulShape", "UserDataset"]
