"""The derivations for positional attention (Jelassi, Sander, Li 2022)."""
