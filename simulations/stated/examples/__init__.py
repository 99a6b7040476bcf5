"""Theory files of other papers, for ``patchdyn theory FILE.py``."""
