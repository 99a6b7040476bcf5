"""Claims of papers whose theories are stated in one file, one module each; light."""

#: Claim id -> module here.
CLAIMS = {
    "theory-teacher": "teacher",
    "theory-in-context": "in_context",
    "theory-look-up": "look_up",
    "theory-induction": "induction",
}
