"""Links of the built book: each leads to a page and a place that exist, and nothing is loaded.

Run as ``python check_links.py FOLDER`` by ``make docs``. What lies elsewhere (https) may be linked
to, and is not looked at; a script, style or picture from elsewhere is a fault.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes whose address is loaded with the page.
_LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")}


class _Page(HTMLParser):
    """The places of a page, and the addresses in it: (address, whether it is loaded)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.addresses: list[tuple[str, bool]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.addresses.append((value, (tag, name) in _LOADED))


def faults(folder: Path) -> list[str]:
    """Return what is wrong with the links of the pages in a folder, a sentence each."""
    pages = {
        path.resolve(): _Page(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.html"))
    }
    found = []
    for path, page in pages.items():
        for address, loaded in page.addresses:
            parts = urlsplit(address)
            where = f"{path.relative_to(folder.resolve())}: {address}"
            if parts.scheme in ("mailto", "data", "javascript"):
                continue
            if parts.scheme or parts.netloc:
                if loaded:
                    found.append(f"{where} is loaded from elsewhere")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{where} leads nowhere")
            elif target in pages and parts.fragment:
                place = unquote(parts.fragment)
                found += [f"{where} names no place"] * (place not in pages[target].places)
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    wrong = faults(folder)
    print("\n".join(wrong) or f"the links of {len(list(folder.rglob('*.html')))} pages are sound")
    sys.exit(bool(wrong))
