"""Ask a question on the page of a server, and say what came back and when.

    python ci/first_answer.py http://127.0.0.1:8000/ "What is 17 + 25?" FOLDER

`ci/first_run.sh` runs it. Leaves pictures of the page before and after in the folder.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

ANSWER_MS = 60_000
SIZE = {"width": 1180, "height": 760}


def main(url: str, question: str, folder: Path) -> None:
    """Ask, and print the answer and its figures."""
    folder.mkdir(parents=True, exist_ok=True)
    found = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(url)
        expect(page.locator("#voice option").first).to_be_attached(timeout=ANSWER_MS)
        page.screenshot(path=folder / "1_opened.png")
        page.get_by_label("Message").fill(question)
        page.keyboard.press("Enter")
        answer = page.locator("#chat-log .answer")
        expect(page.locator("#last-figures")).to_contain_text("First sound", timeout=ANSWER_MS)
        page.screenshot(path=folder / "2_speaking.png")
        expect(answer).to_have_attribute("aria-busy", "false", timeout=ANSWER_MS)
        expect(page.locator("#last-stages")).to_be_visible()
        page.screenshot(path=folder / "3_answered.png")
        print(answer.locator(".markdown").inner_text())
        for figure in page.locator("#last-figures > div").all():
            print(": ".join(figure.inner_text().splitlines()))
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
