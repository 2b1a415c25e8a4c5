"""Take the picture of the page that the README shows.

    PYTHONPATH=.cache/browser python ci/page_picture.py http://127.0.0.1:8000 docs/charts/page.png

Needs a running server with the bundled model, a Chromium, and what `ci/browser.sh` installs.
"""

import shutil
import sys

from playwright.sync_api import expect, sync_playwright

QUESTIONS = ("What day comes after Monday?", "What is 17 + 25?")
ANSWER_MS = 60_000
SIZE = {"width": 1180, "height": 925}


def main(url: str, path: str) -> None:
    """Ask two questions, and take a picture of the answers."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, device_scale_factor=1)
        page.goto(url)
        for number, question in enumerate(QUESTIONS):
            page.get_by_label("Message").fill(question)
            page.keyboard.press("Enter")
            answer = page.locator("#chat-log .answer").nth(number)
            expect(answer).to_have_attribute("aria-busy", "false", timeout=ANSWER_MS)
        expect(page.locator("#last-stages")).to_be_visible()
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
