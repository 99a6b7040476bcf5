"""Section 6 of Jelassi, Sander, Li 2022 on real images (optional extra ``vision``).

``data`` reads images from installed packages and from files of the user. The package imports no
theory, and only its command and its claims import it.
"""

#: Command that installs the extra.
INSTALL = 'pip install "patchdyn[vision]"'
