"""What the benches of loading share: a DataLoader under test, its stream of batches, and the search for workers."""
