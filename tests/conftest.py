import os

import hypothesis

os.environ.setdefault("MPLBACKEND", "Agg")

hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser):
    """Add the size and the seed of the fuzzers (tests/fuzz)."""
    parser.addoption("--fuzz-cases", type=int, default=40, help="cases of each fuzzer")
    parser.addoption("--fuzz-seed", default="0", help="an integer, or 'random'")
    parser.addoption("--fuzz-kills", type=int, default=2, help="kills of a running process")
    parser.addoption(
        "--fuzz-claims", default="figure-3,huang-lemma-5.2", help="claims of the run that is killed"
    )


def pytest_collection_modifyitems(items):
    """Put files with slow tests first: at the end no process works alone on a long one."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
