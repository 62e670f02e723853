"""Open a page in Chromium, and print milliseconds: to its first paint, its first head, another one.

python open_page.py '{"page": FILE, "drawn": JAVASCRIPT, "switch": JAVASCRIPT}' [FOLDER OF SCRIPTS]
"""

import json
import os
import sys
from pathlib import Path
from statistics import median

from playwright.sync_api import Request, Route, sync_playwright

# A frame is shown once the next one begins; what the act itself takes comes before.
MEASURE = """(() => {
const act = %(switch)s;
const shown = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
async function measured() {
  await shown();
  const drawn = performance.now(), took = [];
  await new Promise((done) => setTimeout(done, 500));
  const begun = performance.now();
  for (let n = 0; n < 7 && performance.now() - begun < 20000; n++) {
    const start = performance.now();
    await act(n);
    await shown();
    took.push(performance.now() - start);
  }
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return { paint: paint ? paint.startTime : drawn, drawn, took };
}
function watch() {
  if (!(%(drawn)s)) return requestAnimationFrame(watch);
  measured().then((found) => { window.found = found; });
}
watch();
})();"""


asked, scripts = json.loads(sys.argv[1]), sys.argv[2]


def serve(route: Route) -> None:
    """What the page asks of a content network comes from the folder."""
    route.fulfill(path=Path(scripts) / route.request.url.rpartition("/")[2])


def refuse(request: Request) -> None:
    """A page that lacks its scripts is not slow, it is not there."""
    print(f"{request.url} could not be loaded; give --scripts", file=sys.stderr)
    os._exit(1)


with sync_playwright() as playwright:
    started = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    page = started.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(0)
    if scripts:
        page.route(lambda url: url.startswith("http"), serve)
    page.on("requestfailed", refuse)
    page.add_init_script(MEASURE % asked)
    page.goto(f"file://{asked['page']}", wait_until="commit")
    found = page.wait_for_function("() => window.found").json_value()
    started.close()
print(json.dumps([found["paint"], found["drawn"], median(found["took"][1:] or found["took"])]))
