#!/bin/sh
# Builds the documents' site: tools/site.sh [PROGRAM [FOLDER]]; the site lies in FOLDER/site (build/site/site). A dead link, also to
# a heading, is an error; links to other sites are not fetched. Needs the packages of the extra `docs` (pyproject.toml) in
# $TILECAST_PYTHON, else in python3.
set -eu
cd "$(dirname "$0")/.."
program=${1:-build/release/tilecast}
folder=${2:-build/site}
python=${TILECAST_PYTHON:-python3}
"$python" tools/site_pages.py "$program" "$folder"
NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --quiet --strict --config-file "$folder/mkdocs.yml"
"$python" tools/site_links.py "$folder/site"
