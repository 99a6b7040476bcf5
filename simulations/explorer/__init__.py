"""`patchdyn explore`: an interactive web page on this machine that runs problems of any theory.

``state`` converts addresses and parameters. ``run_job`` computes a run in a worker process.
``page`` consists of ``controls``, ``plots``, ``sweep_panel`` and ``fragments``.
``server`` serves the page to this machine only.
"""

#: Command that installs the requirements of the page, in a checkout.
COMMAND = "pip install '.[explore]'"
