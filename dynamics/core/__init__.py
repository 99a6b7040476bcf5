"""What every theory computes with: solvers, trajectories, checks. Knows no paper."""
