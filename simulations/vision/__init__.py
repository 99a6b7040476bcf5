"""Section 6 of Jelassi, Sander, Li 2022 on real images: an optional room (extra ``vision``).

``data`` reads images that packages ship and those of a user. The room imports no theory, and only
its command and its claims import it.
"""

#: What installs all that this room needs.
INSTALL = 'pip install "patchdyn[vision]"'
