"""The card's id in data/devices, from the name that its driver gives."""

import json
import os
import re

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _plain(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


def device_id(name, folder=os.path.join(REPOSITORY, "data", "devices")):
    """The id whose id or aliases match `name` without case and punctuation, else a slug of it."""
    for file in sorted(os.listdir(folder)):
        with open(os.path.join(folder, file), encoding="utf-8") as stream:
            device = json.load(stream)
        identifier = file.removesuffix(".json")
        aliases = device.get("aliases", [])
        if _plain(name) in {_plain(alias) for alias in [identifier, *aliases]}:
            return identifier, True
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"), False
