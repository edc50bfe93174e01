"""A headless Chromium for tests and screenshots of the page: Debian's chromium and chromium-driver, and selenium."""
from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def missing() -> str:
    """What keeps a browser from being started here; '': nothing does."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed (pip install selenium)"
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: chromium, chromium-driver)"
    return ""


@contextmanager
def browser(width: int = 1280, height: int = 900, dark: bool = False) -> Iterator[Any]:
    """A driver of a window of that size. Downloads are not saved."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb",
                 f"--window-size={max(width, 500)},{height}"):
        options.add_argument(word)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(executable_path=shutil.which("chromedriver")))
    try:
        driver.set_script_timeout(120)
        resize(driver, width, height)
        color(driver, dark)
        yield driver
    finally:
        driver.quit()


def resize(driver: Any, width: int, height: int) -> None:
    """A phone's width is less than a window can have."""
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})


def color(driver: Any, dark: bool) -> None:
    value = "dark" if dark else "light"
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": value}]})


def whole_page(driver: Any, width: int, most: int = 6000) -> None:
    """Makes the window as high as the page, for a picture of all of it."""
    resize(driver, width, min(most, driver.execute_script("return document.documentElement.scrollHeight")))
