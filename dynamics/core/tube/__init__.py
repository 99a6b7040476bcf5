"""Tubes around solutions of differential and difference equations, proved in ball arithmetic."""
