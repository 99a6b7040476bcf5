"""What figures show, where a claim does not gather it itself: modules named like the figure."""
