"""A real browser, offline; every page is watched for requests, messages and errors."""

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
    """A page, its requests, and its messages and errors."""

    page: Page
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def see_all(self) -> None:
        """Go down the page, so that each figure comes into sight and is drawn."""
        for figure in self.page.locator(".plot").all():
            figure.scroll_into_view_if_needed()
            figure.locator(".main-svg").first.wait_for()


Open = Callable[..., Opened]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        reason = f"no browser: expected one of {', '.join(NAMES)}, as apt-get install chromium has it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Return what opens a file, or an address, in a window of a width and a color scheme, with `hash` at its end."""
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
        result = Opened(context.new_page())
        result.page.on("request", lambda request: result.requests.append(request.url))
        result.page.on("console", lambda message: result.messages.append(message.text))
        result.page.on("pageerror", lambda error: result.messages.append(str(error)))
        result.page.goto((path.as_uri() if isinstance(path, Path) else path) + hash)
        result.page.wait_for_selector("html[data-ready]")
        return result

    yield opened
    for context in contexts:
        context.close()
