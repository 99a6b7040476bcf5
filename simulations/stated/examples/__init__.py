"""Theories of other papers, each stated in one file: `patchdyn theory FILE.py`."""
