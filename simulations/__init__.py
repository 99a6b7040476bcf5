"""What a person runs: claims, figures, the report and the command line."""
