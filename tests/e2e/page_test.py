"""The chat page in headless Chromium, with a real model behind it.

Usage: page_test.py PATH_TO_DUNLIN [FOLDER_FOR_SCREENSHOTS]"""

import json
import pathlib
import shutil
import sys
import time
import unittest

DUNLIN = sys.argv[1]
SHOTS = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
sys.path.insert(0, str(pathlib.Path(__file__).parent))

from running_server import RunningServer, model_path  # noqa: E402
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

MODEL = model_path("SmolLM2-135M-Instruct.Q4_1.gguf")
RUNNING = "vllm:num_requests_running"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer(DUNLIN, MODEL, "--context", "2048")
        cls.server.__enter__()
        options = webdriver.ChromeOptions()
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(flag)
        options.binary_location = shutil.which("chromium")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.server.__exit__()

    def setUp(self):
        self.browser.set_window_size(1200, 850)
        self.browser.get(self.server.url + "/")
        self.browser.execute_script("localStorage.clear()")
        self.browser.get(self.server.url + "/")
        self.wait(lambda: self.find("#model").text != "")

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def wait(self, condition, seconds=60):
        WebDriverWait(self.browser, seconds, poll_frequency=0.05).until(lambda _: condition())

    def ask(self, text, max_tokens=None, **settings):
        values = {"temperature": 0, "max_tokens": max_tokens} | settings
        for name, value in values.items():
            self.set_value(name, value)
        if len(text) < 1000:
            self.find("#input").send_keys(text)
        else:  # pasted: a busy machine takes minutes to type it
            self.set_value("input", text)
        self.find("#send").click()

    def set_value(self, name, value):
        self.browser.execute_script(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1] ?? '';"
            "e.dispatchEvent(new Event('input', {bubbles: true}))", name, value)

    def answered(self):
        self.wait(lambda: self.find("#send").is_displayed())

    def shot(self, name):
        if SHOTS:
            SHOTS.mkdir(parents=True, exist_ok=True)
            self.browser.save_screenshot(str(SHOTS / f"{name}.png"))

    def sideways(self):
        return self.browser.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def test_streams_an_answer_in_at_least_three_changes(self):
        self.browser.execute_script(
            "window.changes = new Set();"
            "new MutationObserver(() => { const b = document.querySelector('.message.assistant .body');"
            " if (b) window.changes.add(b.textContent); })"
            ".observe(document.getElementById('messages'), {childList: true, subtree: true, characterData: true})")
        self.ask("Write a short Python function that adds two numbers.", 160)
        self.answered()
        self.assertGreaterEqual(self.browser.execute_script("return window.changes.size"), 3)
        self.assertRegex(self.find(".stats").text, r"\d+ tokens.*tokens/s.*first token after \d+ ms")
        self.shot("answer")

    def test_stop_ends_the_answer_here_and_in_the_engine(self):
        self.ask("Write a very long story about a bird, in twenty chapters.", None)
        self.wait(lambda: self.all(".message.assistant") and self.find(".message.assistant").text)
        self.wait(lambda: self.server.metric(RUNNING) == 1, 5)
        self.find("#stop").click()
        self.answered()
        self.wait(lambda: self.server.metric(RUNNING) == 0, 5)
        self.assertIn("stopped", self.find(".stats").text)

    def test_a_reload_keeps_conversations_and_settings(self):
        self.ask("Say hello.", 12, system="You are a bird.")
        self.answered()
        answer = self.find(".message.assistant .body").text
        self.browser.refresh()
        self.wait(lambda: self.all(".message.assistant"))
        self.assertEqual(self.find(".message.assistant .body").text, answer)
        self.assertEqual(self.find("#system").get_property("value"), "You are a bird.")
        self.assertEqual(self.find("#chats .title").text, "Say hello.")

    def test_retry_edit_and_new_chat(self):
        self.ask("Say hello.", 8)
        self.answered()
        [retry] = [b for b in self.all(".tools button") if b.text == "Retry"]
        retry.click()
        self.answered()
        self.assertEqual(len(self.all(".message")), 2)
        [edit] = [b for b in self.all(".tools button") if b.text == "Edit"]
        edit.click()
        area = self.find(".edit-area")
        area.clear()
        area.send_keys("Say goodbye.")
        [send] = [b for b in self.all(".tools button") if b.text == "Send"]
        send.click()
        self.answered()
        self.assertEqual([m.text for m in self.all(".message.user .body")], ["Say goodbye."])
        self.find("#new-chat").click()
        self.assertEqual(self.all(".message"), [])
        self.assertEqual(len(self.all("#chats li")), 2)

    def test_shows_the_error_of_the_server(self):
        self.ask("word " * 3000, 8)
        self.answered()
        self.assertIn("context", self.find(".error").text)
        self.shot("error")

    def test_fits_a_phone(self):
        self.browser.set_window_size(390, 844)
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True})
        try:
            self.store_answer("A table and a long line:\n\n| a | b |\n|---|---|\n| " + "x" * 90 + " | y |\n\n```python\n"
                              + "print('" + "long " * 40 + "')\n```\n" + "w" * 200)
            self.assertEqual(self.sideways(), 0)
            self.shot("phone")
            self.find("#settings-button").click()
            self.assertEqual(self.sideways(), 0)
            self.find("#menu").click()
            self.wait(lambda: self.find("#new-chat").is_displayed())
            time.sleep(0.3)
            self.assertEqual(self.sideways(), 0)
            self.shot("phone-menu")
        finally:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def store_answer(self, text):
        chats = [{"id": "1", "title": "t", "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": text}]}]
        self.browser.execute_script("localStorage.setItem('dunlin.chats', arguments[0])", json.dumps(chats))
        self.browser.refresh()
        self.wait(lambda: self.all(".message.assistant"))

    def test_nothing_that_a_model_says_runs(self):
        hostile = ("<img src=x onerror='window.pwned=1'><script>window.pwned=1</script><svg onload='window.pwned=1'>"
                   "<a href='javascript:window.pwned=1'>x</a>[y](javascript:window.pwned=1)<iframe src=\"javascript:parent.pwned=1\"></iframe>"
                   "<form action=/x><button>go</button></form><div style='position:fixed' id=input>z</div>\n\n```html\n<img src=x onerror='window.pwned=1'>\n```\n")
        self.store_answer(hostile)
        for link in self.all(".message.assistant .body a"):
            self.assertFalse((link.get_attribute("href") or "").startswith("javascript"))
        time.sleep(0.3)
        self.assertIsNone(self.browser.execute_script("return window.pwned ?? null"))
        self.assertEqual(self.all(".message.assistant .body img, .message.assistant .body iframe, .message.assistant .body form, .body [style]"), [])
        self.assertIn("onerror", self.find(".message.assistant pre").text)

    def test_shows_markdown_and_coloured_code(self):
        self.store_answer("# Title\n\n- one\n- **two**\n\n```python\ndef add(a, b):\n    return a + b  # sum\n```\n\n> quote and `code`")
        for selector in ("h1", "li strong", "pre code .hljs-keyword", "blockquote code", ".copy-code"):
            self.assertTrue(self.all(f".message.assistant .body {selector}"), selector)
        self.shot("markdown")

    def test_asks_nobody_but_its_own_server(self):
        self.browser.get_log("performance")
        self.browser.refresh()
        self.ask("Say hello.", 4)
        self.answered()
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                self.assertTrue(url.startswith((self.server.url, "data:")), url)
        severe = [e for e in self.browser.get_log("browser") if e["level"] == "SEVERE"]
        self.assertEqual(severe, [])


if __name__ == "__main__":
    if MODEL is None:
        print("SKIP: the model smollm2-135m is not in the cache; run: dunlin pull smollm2-135m")
        sys.exit(0)
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("SKIP: chromium or chromedriver is not installed")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
