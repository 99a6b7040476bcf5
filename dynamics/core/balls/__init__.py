"""Rigorous arithmetic in floats: balls (a middle and a radius) and Taylor series of balls."""
