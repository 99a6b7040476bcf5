"""Risks that depend on vectors only through their inner products, exact in any dimension."""
