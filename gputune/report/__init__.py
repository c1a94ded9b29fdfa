"""Profiles, findings and what was applied, for people (`terminal`) and for machines (`json`)."""
