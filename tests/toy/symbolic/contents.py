"""The derivations of the toy theory by identifier."""

ORDER = 3
TITLES = {"toy-gradient": ("The gradient of the toy risk, and what it conserves", "everywhere")}
