"""What the figures show, computed: one module each, named like the figure that draws it."""
