#!/usr/bin/env python3
"""Pictures of the page for the documentation: tools/screenshots.py PROGRAM [FOLDER]

Starts the program as a service, opens its page in Chromium (Debian's chromium, chromium-driver; selenium) and writes
page.png and page-phone.png into FOLDER, docs/guide unless given. Fails where a picture has more than 150 kB.
"""
from __future__ import annotations

import base64
import os
import sys
import time
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import browser as browsers  # noqa: E402
import server_test  # noqa: E402

MOST_BYTES = 150_000
LLAMA = "scenario=generation&model=llama-3.1-8b&gpus=H100,A100,L40S,MI300X"
# Name, what the page shows, width, height, pixels of the picture for one of the page, dark.
PICTURES = (("page.png", LLAMA, 1280, 940, 0.75, False), ("page-phone.png", LLAMA, 390, 844, 0.75, True))
SETTLED = "return performance.getEntriesByName('tilecast-answer').length > 0 && !document.querySelector('[aria-busy]')"


def picture(driver: Any, width: int, height: int, scale: float) -> bytes:
    clip = {"x": 0, "y": driver.execute_script("return scrollY"), "width": width, "height": height, "scale": scale}
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})["data"])


def main() -> None:
    server_test.PROGRAM = sys.argv[1]
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "docs", "guide")
    if reason := browsers.missing():
        sys.exit(reason)
    with server_test.Service() as service:
        for name, words, width, height, scale, dark in PICTURES:
            with browsers.browser(width, height, dark) as driver:
                driver.get(f"http://localhost:{service.port}/#{words}")
                while not driver.execute_script(SETTLED):
                    time.sleep(0.1)
                if width < 500:  # the form is above the answers
                    driver.execute_script("document.getElementById('results').scrollIntoView()")
                time.sleep(1)  # charts take the width they have
                content = picture(driver, width, height, scale)
            if len(content) > MOST_BYTES:
                sys.exit(f"{name} has {len(content)} bytes, more than {MOST_BYTES}")
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
            print(f"{name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
