"""The claims and the report: what is claimed, how it is run, stored and shown."""
