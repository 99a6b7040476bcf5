"""Drawing functions of positional attention that are too long to stand next to their claim."""
