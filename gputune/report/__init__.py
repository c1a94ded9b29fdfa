"""Profiles, findings and what was applied, for people (`terminal`, with charts) and for machines (`json`)."""
