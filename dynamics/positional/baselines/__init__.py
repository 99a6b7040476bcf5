"""What Section 3, 5 and the figures compare with: linear models, learners, explicit weights."""
