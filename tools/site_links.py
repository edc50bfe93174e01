#!/usr/bin/env python3
"""Follows every link of a built site to its file and its anchor; links to other sites are counted, not fetched.

    tools/site_links.py FOLDER
"""
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors and links of a page."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = {""}, []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def main():
    root = Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in root.rglob("*.html") if not path.name.endswith(".report.html")}
    links = outside = 0
    dead = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                outside += 1
                continue
            links += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                dead.append(f"{path.relative_to(root)}: {link}: no such file")
            elif target in pages and not target.name.startswith("404") and unquote(parts.fragment) not in pages[target].anchors \
                    and not parts.fragment.startswith("__"):
                dead.append(f"{path.relative_to(root)}: {link}: no such heading")
    print(*dead, sep="\n", end="\n" if dead else "")
    print(f"site: {len(pages)} pages, {links} links, {len(dead)} dead; {outside} links to other sites")
    sys.exit(1 if dead or not links else 0)


if __name__ == "__main__":
    main()
