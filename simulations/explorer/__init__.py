"""`patchdyn explore`: a page on this machine that runs problems of any theory while one plays.

``state`` is what a page shows as text (its address, its parameters), ``look`` what is computed of a
run, ``workers`` the processes that compute it, ``controls``, ``plots``, ``mapped``, ``sweep`` and
``words`` the parts of ``page``, ``server`` the door, which opens to this machine alone.
"""

#: What installs all that the page needs.
COMMAND = 'pip install "patchdyn[explore]"'
