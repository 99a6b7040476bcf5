"""System, claims and figures of masked image modelling (Huang, Wen, Chi, Liang 2024)."""
