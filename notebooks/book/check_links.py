"""Check the links of the built book.

``make docs`` runs ``python check_links.py FOLDER``. Each internal link must lead to an existing
page and anchor. External links are allowed and not followed, but a page must not load external
scripts, styles or images.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes whose address a browser loads with the page.
_LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")}


class _Page(HTMLParser):
    """Parse a page for its anchors and addresses.

    Attributes
    ----------
    anchors
        All values of ``id`` and ``name``.
    addresses
        Pairs of an address and whether a browser loads it with the page.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.addresses: list[tuple[str, bool]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.addresses.append((value, (tag, name) in _LOADED))


def faults(folder: Path) -> list[str]:
    """Return one message for each bad link of the pages in a folder."""
    pages = {
        path.resolve(): _Page(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.html"))
    }
    messages = []
    for path, page in pages.items():
        for address, loaded in page.addresses:
            parts = urlsplit(address)
            where = f"{path.relative_to(folder.resolve())}: {address}"
            if parts.scheme in ("mailto", "data", "javascript"):
                continue
            if parts.scheme or parts.netloc:
                if loaded:
                    messages.append(f"{where} is loaded from another site")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                messages.append(f"{where} leads to no page")
            elif target in pages and parts.fragment:
                anchor = unquote(parts.fragment)
                if anchor not in pages[target].anchors:
                    messages.append(f"{where} names no anchor")
    return messages


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    wrong = faults(folder)
    print("\n".join(wrong) or f"all links of {len(list(folder.rglob('*.html')))} pages are valid")
    sys.exit(bool(wrong))
