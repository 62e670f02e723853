// The page as a whole: heads come in when they are chosen.

const LATEST = 24, REST = 60; // milliseconds
const found = new Map(); // what was found of a head, of those that came last
const waiting = new Map(); // heads on their way, each with what is done when it comes

// called by the script of a head beside the page
window.attnvizHead = (head) => waiting.get(head.head)?.(head);

function script(name) {
  return new Promise((done, fail) => {
    const asked = document.createElement("script");
    waiting.set(name, done);
    asked.addEventListener("load", () => fail(new Error("other"))); // too late if it called
    asked.addEventListener("error", () => fail(new Error("missing")));
    asked.src = `${data.folder}/${name}.js`;
    document.head.append(asked);
    asked.addEventListener("load", () => asked.remove());
  }).finally(() => waiting.delete(name));
}

// a page of one file holds its heads at its end, which may be still on its way
async function inside(name) {
  if (!byId(`head-${name}`) && document.readyState === "loading") {
    await new Promise((go) => document.addEventListener("DOMContentLoaded", go));
  }
  return JSON.parse(byId(`head-${name}`).textContent);
}

// what was found of a head; a promise, as it may be on its way already
function headNamed(name) {
  const coming = found.get(name) || (data.folder === null ? inside(name) : script(name)).then((head) => {
    if (head.scan !== data.scan) throw new Error("other");
    return head;
  });
  found.delete(name);
  found.set(name, coming);
  coming.catch(() => found.delete(name)); // it may be there next time
  if (found.size > LATEST) found.delete(found.keys().next().value);
  return coming;
}

let soon = 0;

// a head that the pointer rests on is fetched before it is clicked
function fetchSoon(head) {
  clearTimeout(soon);
  if (head !== null) soon = setTimeout(() => headNamed(heads[head].name).catch(() => {}), REST);
}

async function choose(head) {
  state.head = head;
  writeFragment();
  markChosen();
  byId("why").textContent = whyFirst(head);
  const { name } = heads[head];
  try {
    const shown = await headNamed(name);
    if (state.head !== head) return; // another one was chosen meanwhile
    byId("problem").hidden = true;
    byId("panel").hidden = false;
    drawHead(shown);
  } catch (error) {
    if (state.head !== head) return;
    showProblem(name, error.message);
  }
  byId("jump").textContent = `${name} ↓`;
  document.body.dataset.ready = name;
}

function showProblem(name, what) {
  byId("head-title").textContent = name;
  const file = `${decodeURIComponent(data.folder ?? "")}/${name}.js`;
  byId("problem").textContent = what === "missing"
    ? `${file} cannot be read. The folder that attnviz wrote beside this page has to stay beside it.`
    : what === "other" ? `${file} belongs to another scan than this page. Write the page again with attnviz atlas.` : `This head cannot be shown: ${what}`;
  byId("problem").hidden = false;
  byId("panel").hidden = true;
}

function whyFirst(head) {
  const { head: first, score, telling } = data.start;
  if (head !== first) return "";
  return telling ? `Shown first, as it has the highest ${scores.get(score).label} score of all heads: ${scores.get(score).says}.` : "";
}

// on a narrow screen the head is below the pictures: a button leads to it while it is out of sight
function listenToJump() {
  new IntersectionObserver(([seen]) => {
    byId("jump").hidden = seen.isIntersecting || seen.boundingClientRect.top < 0;
  }, { rootMargin: "0px 0px -60px 0px" }).observe(byId("head-title"));
  byId("jump").addEventListener("click", () => {
    byId("head").scrollIntoView();
    byId("head").focus({ preventScroll: true });
  });
}

function listen() {
  listenToOverview();
  listenToExamples();
  listenToSearch();
  listenToJump();
  byId("theme").addEventListener("click", () => {
    state.theme = otherTheme(state.theme);
    showTheme(state.theme);
    writeFragment();
  });
  window.addEventListener("resize", () => { if (byId("scatter").clientWidth !== plotted.across) redraw(); });
  window.addEventListener("hashchange", () => {
    Object.assign(state, initial, readFragment());
    show();
  });
}

function show() {
  showTheme(state.theme);
  showDirection();
  fillChoices();
  drawOverview();
  byId("find").value = state.find;
  find();
  return choose(state.head);
}

function start() {
  byId("title").textContent = data.title;
  byId("about").textContent = data.about;
  byId("error").textContent = `Weights on this page are exact to ${0.5 / data.levels}.`;
  listen();
  show();
}

start();
