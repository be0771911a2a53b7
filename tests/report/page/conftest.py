"""A real browser, offline; every page is watched for requests, messages and errors."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
"""Without the user namespaces of a container there is no sandbox; what else a browser asks for is turned off."""


@dataclass
class Opened:
    """A page, and what it asked for and said."""

    page: Page
    requests: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def see_all(self) -> None:
        """Go down the page, so that each figure comes into sight and is drawn."""
        for figure in self.page.locator(".plot").all():
            figure.scroll_into_view_if_needed()
            figure.locator(".main-svg").first.wait_for()


Open = Callable[..., Opened]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        reason = f"no browser: expected one of {', '.join(NAMES)}, as apt-get install chromium has it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield found
        found.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Return what opens a file, or an address, in a window of a width and a colour scheme, with `hash` at its end."""
    contexts = []

    def opened(
        path: Path | str, *, width: int = 1600, scheme: Literal["dark", "light"] = "light", hash: str = ""
    ) -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            offline=isinstance(path, Path),
            accept_downloads=True,
        )
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.on("console", lambda message: found.said.append(message.text))
        found.page.on("pageerror", lambda error: found.said.append(str(error)))
        found.page.goto((path.as_uri() if isinstance(path, Path) else path) + hash)
        found.page.wait_for_selector("html[data-ready]")
        return found

    yield opened
    for context in contexts:
        context.close()
