"""The theory files that come with patchdyn."""

from pathlib import Path

from simulations.stated import examples

EXAMPLES = Path(examples.__file__).parent


def enumerated() -> list[Path]:
    """Return the examples whose data are enumerated: all but those in overlaps."""
    files = sorted(EXAMPLES.glob("[a-z]*.py"))
    return [path for path in files if "symbolic.overlaps" not in path.read_text("utf-8")]
