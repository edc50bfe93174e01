#!/usr/bin/env python3
"""Stages the pages of the documents' site for mkdocs: tools/site_pages.py PROGRAM FOLDER

FOLDER/pages holds the README, all pages of docs, every page and file that they link to, in the folders of the repository, so that
their links work as they are; and a scoreboard of each GPU in data/measurements, made by `evaluate`. FOLDER/mkdocs.yml inherits the
project's and adds the navigation, which follows the folders: a new page needs no line here.
"""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"(```.*?```)", re.S)
# Sections in their order: title, the pages that come first, the folder whose other pages follow by their titles.
SECTIONS = [
    ("Guide", ["docs/guide/install.md", "docs/guide/first_forecast.md", "docs/guide/choose_a_gpu.md", "docs/guide/python.md"], "docs/guide"),
    ("Reference", ["docs/reference/commands.md", "docs/reference/results.md"], "docs/reference"),
    ("Explanation", ["docs/explanation/laws.md"], "docs/explanation"),
    ("Accuracy", ["docs/accuracy.md"], "docs/scoreboards"),
    ("Project", ["docs/architecture.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"], None),
]
# Pages beside the folders: which section they belong to.
SECTION_OF = {"docs/published.md": "Accuracy", "docs/server_accuracy.md": "Accuracy"}


def title(page):
    return re.search(r"^# (.*)$", page.read_text(encoding="utf-8"), re.M)[1].replace("`", "")


def stage(pages):
    """Copies all pages and what they link to; links that no page can follow become text."""
    queue = [ROOT / "README.md", *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")), *(ROOT / "docs").rglob("*.md")]
    done = set()

    def link(match, page):
        picture, text, target = match.groups()
        name, mark, anchor = target.partition("#")
        if not name or re.match(r"https?:|mailto:", target):
            return match[0]
        file = (page.parent / name).resolve()
        if file.is_dir() and (file / "README.md").exists():
            queue.append(file / "README.md")
            return f"[{text}]({name.rstrip('/')}/README.md{mark}{anchor})"
        if file.is_dir() or ROOT not in file.parents:
            return text
        queue.append(file)
        return match[0]

    while queue:
        file = queue.pop()
        if file in done or not file.exists():  # a link to nothing is left to mkdocs, which reports it
            continue
        done.add(file)
        staged = pages / file.relative_to(ROOT)
        staged.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copy(file, staged)
            continue
        parts = FENCED.split(file.read_text(encoding="utf-8"))
        parts[::2] = [LINK.sub(lambda match, page=file: link(match, page), part) for part in parts[::2]]
        staged.write_text("".join(parts), encoding="utf-8")


def scoreboards(program, pages):
    """A page for each folder of measurements, with the report of `evaluate` in it."""
    folder = pages / "docs/scoreboards"
    folder.mkdir(parents=True, exist_ok=True)
    for measured in sorted(path for path in (ROOT / "data/measurements").iterdir() if path.is_dir()):
        report = folder / f"{measured.name}.report.html"
        subprocess.run([program, "evaluate", str(measured), "-o", str(report)], check=True, stderr=subprocess.DEVNULL)  # warnings are in the report
        (folder / f"{measured.name}.md").write_text(
            f"# Scoreboard: {measured.name}\n\nForecasts of kernels beside the measurements of `data/measurements/{measured.name}`, made by "
            f"`tilecast evaluate data/measurements/{measured.name} -o report.html` when this site was built ([the report alone]({report.name})). "
            "The weights were trained on these rows; errors of left-out GPUs are on the page [accuracy](../accuracy.md).\n\n"
            f'<iframe src="{report.name}" title="Errors of {measured.name}" style="width:100%;height:80vh;border:0"></iframe>\n',
            encoding="utf-8")


def navigation(pages):
    staged = {str(page.relative_to(pages)) for page in pages.rglob("*.md")}
    nav = [{"Home": "README.md"}]
    staged.discard("README.md")
    for name, first, folder in SECTIONS:
        of_section = [page for page in first if page in staged]
        others = {page for page in staged if (folder and page.startswith(folder + "/")) or SECTION_OF.get(page) == name}
        of_section += sorted(others - set(of_section), key=lambda page: title(pages / page))
        staged -= set(of_section)
        nav.append({name: [{title(pages / page): page} for page in of_section]})
    nav.append({"Research": [{title(pages / page): page} for page in sorted(staged)]})
    return nav


def main():
    program, out = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve()
    shutil.rmtree(out, ignore_errors=True)
    pages = out / "pages"
    pages.mkdir(parents=True)
    stage(pages)
    scoreboards(program, pages)
    (out / "mkdocs.yml").write_text(
        f"INHERIT: {json.dumps(str(ROOT / 'mkdocs.yml'))}\ndocs_dir: pages\nsite_dir: site\nnav: {json.dumps(navigation(pages), indent=1)}\n",
        encoding="utf-8")


if __name__ == "__main__":
    main()
