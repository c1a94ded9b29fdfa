"""Shared by the benches of loading: a DataLoader under test, its stream of batches, and the search for workers."""
