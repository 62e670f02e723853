// What a live page has beside a lesson's: models, other inputs, what brings the next token, two columns, a second page
// beside the first, why, the command line, and downloads.

const about = data.live; // { models, text, chat, beside, image, sound, command }
const PICTURES = { PNG: ["show", "image/png", "png"], SVG: ["show", "image/svg+xml", "svg"], capture: ["show", "application/x-npz", "npz"] };

function makeLive(engine) {
  byId("loading").textContent = "The first text is being run …";
  document.querySelector("h1").textContent = about.models[0];
  document.body.style.setProperty("--most-heads", engine.about.heads);
  state.auto = !location.hash.includes("h=L") || location.hash.includes("by=page");
  byId("theme").before(...modelTools());
  byId("examples").after(otherInputs(engine), made("p", { id: "progress", class: "hint", role: "status" }), made("p", { id: "notes", class: "hint" }));
  byId("fits").after(tools());
  document.querySelector("#pattern .beside > div:last-child").append(made("canvas", { id: "seen", hidden: "", role: "img", "aria-label": "the image, bright where the query attends to it" }), made("div", { id: "columns", tabindex: 0, role: "group", "aria-label": "links as lines: arrow keys move, Enter chooses" }), made("p", { id: "drawn", class: "hint" }));
  byId("next-of").after(made("p", { id: "brings" }));
  byId("typing").hidden = !about.text;
  listenToColumns();
  followers.push(drawLinks, drawImage, tellRun);
}

// ---- models, and a page beside this one ----

function modelTools() {
  const choice = (id, said) => made("label", {}, `${said} `, made("select", { id }, ...about.models.map((name) => made("option", { value: name }, name))));
  const models = about.models.length > 1 ? [choice("model", "model")] : [], button = made("button", { type: "button", id: "beside" }, "compare");
  models[0]?.addEventListener("change", ({ target }) => { location.search = `?${new URLSearchParams({ model: target.value })}`; });
  button.addEventListener("click", () => byId("second") ? closeSecond() : openSecond());
  return window.parent === window ? [...models, button] : models;
}

// the same page in a frame: with the next model on this text, or with the only one on another text
function openSecond() {
  const other = about.models[1] ?? about.models[0], place = new URLSearchParams({ model: other });
  const frame = made("iframe", { id: "second", title: "a second text or model", src: `?${place}#${new URLSearchParams({ text: state.text })}` });
  document.body.after(frame);
  document.documentElement.classList.add("split");
  byId("beside").textContent = "close the second";
  addEventListener("resize", redraw);
  redraw();
}

// the second model reads what the first one does
function followText(text) {
  if (state.text === text) return;
  state.text = byId("text").value = text;
  refresh();
}

function closeSecond() {
  byId("second").remove();
  document.documentElement.classList.remove("split");
  byId("beside").textContent = "compare";
  redraw();
}

// ---- what is read beside the text ----

function otherInputs(engine) {
  const box = made("form", { class: "tools", id: "inputs" }), change = (name, value) => {
    if (value === undefined || value === "" || value === false) delete engine.inputs[name];
    else engine.inputs[name] = value;
    whole = null; // of other inputs
    refresh();
  };
  if (about.chat) {
    const chat = made("input", { type: "checkbox", id: "chat" });
    chat.addEventListener("change", () => change("chat", chat.checked));
    box.append(made("label", {}, chat, "as a message of a chat"));
  }
  if (about.beside) {
    const beside = made("input", { id: "beside-text", autocomplete: "off", placeholder: about.beside });
    beside.addEventListener("input", () => change("beside", beside.value));
    box.append(made("label", {}, `${about.beside} `, beside));
  }
  for (const kind of ["image", "sound"]) if (about[kind]) {
    const file = made("input", { type: "file", id: `file-${kind}`, accept: about[kind] });
    file.addEventListener("change", async () => {
      const [given] = file.files;
      if (given && kind === "image") await openImage(given);
      change(kind, given && await inBase64(given));
    });
    box.append(made("label", {}, `${kind} `, file));
  }
  box.hidden = !box.children.length;
  box.addEventListener("submit", (event) => event.preventDefault());
  return box;
}

async function inBase64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let letters = "";
  for (let at = 0; at < bytes.length; at += 8192) letters += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(letters);
}

// ---- what arrives of a run ----

function tellProgress({ done, of }) {
  byId("progress").textContent = `running: layer ${done} of ${of} …`;
}

// a later part of a run
function arrived(of, part) {
  if (!run || of.layers !== run.layers) return;
  if (part.part === "reads") tellReads(part);
  if (part.part === "layer") {
    byId("steps").hidden = Boolean(part.wrong);
    byId("wrong").textContent = [part.wrong, ...(part.departures ?? [])].filter(Boolean).join(" ");
    if (!part.wrong && part.head.join() === [state.layer, state.head].join()) drawHead();
  }
}

// all parts have come: the chosen head's layer may be none of them
function settled(of) {
  if (run && of.layers === run.layers) engine.need(run, state.layer, state.head);
}

function tellReads({ choice, brings }) {
  const [layer, head] = choice.head;
  headlines = [{ text: run.text, layer, head, query: choice.query, headline: choice.headline }];
  drawHeads();
  drawBrings(brings);
  offer(headlines[0]);
  if (state.auto) drawHead();
  else drawFits();
}

let linesOf = null; // the run whose tokens the two columns name

function drawLinks() {
  if (linesOf !== run.layers) columns = null;
  linesOf = run.layers;
  drawColumns();
}

// the image under a veil that is thin where the chosen query's weights are
function drawImage() {
  const box = byId("seen"), boxes = run.boxes.filter(([key]) => key < run.keys.length), image = box.image;
  box.hidden = !image || !boxes.length;
  if (box.hidden) return;
  const pen = box.getContext("2d"), weights = weightsOf(state.layer, state.head, spot.query), most = Math.max(...boxes.map(([key]) => weights[key])) || 1;
  [box.width, box.height] = [image.naturalWidth, image.naturalHeight];
  pen.drawImage(image, 0, 0);
  for (const [key, x0, y0, x1, y1] of boxes) {
    pen.fillStyle = `rgb(0 0 0 / ${0.8 * (1 - weights[key] / most)})`;
    pen.fillRect(x0 * box.width, y0 * box.height, (x1 - x0) * box.width, (y1 - y0) * box.height);
  }
}

async function openImage(file) {
  const image = new Image();
  image.src = URL.createObjectURL(file);
  await image.decode().catch(() => null); // the server says what is wrong with it
  URL.revokeObjectURL(image.src);
  byId("seen").image = image.naturalWidth ? image : null;
}

let bringing = { of: null, there: false }; // the run that the sentence on the next token is about

// it says nothing of another text, nor of a run without some heads
const tellBrings = () => { byId("brings").hidden = !bringing.there || bringing.of !== run.layers || before !== null; };

// the heads through which the likeliest next token comes, each a button
function drawBrings(brings) {
  bringing = { of: run.layers, there: Boolean(brings) };
  tellBrings();
  if (!brings) return;
  const key = word(run.keys[brings.key].label), heads = brings.heads.map(([layer, head, effect]) => {
    const choice = made("button", { type: "button", title: "its direct effect on the token's logit, against the mean of all tokens" }, `${nameOf([layer, head])} +${effect.toFixed(1)}`);
    choice.addEventListener("click", () => {
      choose(layer, head);
      pin({ query: run.queries.length - 1, key: brings.key });
    });
    return choice;
  });
  byId("brings").replaceChildren(word(brings.token.replace(/^"|"$/g, "").trim()), " is brought from ", key, brings.stands ? " by " : " (not more than a random token would be) by ", ...heads.flatMap((each) => [each, " "]));
}

// ---- why, the command line, and what is taken along ----

function tools() {
  const why = made("button", { type: "button", id: "ask-why" }, "why?"), copy = made("button", { type: "button", id: "copy" }, "copy the command");
  why.addEventListener("click", askWhy);
  copy.addEventListener("click", copyCommand);
  const saves = Object.entries(PICTURES).map(([name, [command, accept, suffix]]) => {
    const save = made("button", { type: "button", "data-save": suffix }, name);
    save.addEventListener("click", () => download(command, accept, suffix));
    return save;
  });
  return made("div", { id: "taken" }, made("p", { class: "tools" }, why, copy, ...saves), made("code", { id: "command", class: "formula" }), made("pre", { id: "why", hidden: "" }), made("p", { id: "wrong", class: "hint" }));
}

// the arguments by which a command reads what the page reads
function argumentsNow(more) {
  const { chat, beside, image, sound } = engine.inputs, told = { text: run.read, model: engine.model, ...more };
  if (chat) Object.assign(told, { special: true, bos: false });
  if (beside) told[isSelf() ? "text_pair" : "target"] = beside;
  return Object.assign(told, image && { image }, sound && { audio: sound });
}

async function askWhy() {
  const box = byId("why");
  if (!box.hidden) return box.hidden = true;
  const { query, key } = spot, asked = argumentsNow({ head: headName(), query, key });
  box.hidden = false;
  box.textContent = "…";
  try {
    box.textContent = await (await answerOf("v1/why", asked, { accept: "text/plain" })).text();
  } catch (error) {
    box.textContent = error.message;
  }
}

async function download(command, accept, suffix) {
  const { text, ...others } = argumentsNow({ heads: suffix === "npz" ? "all" : headName() });
  try {
    const answer = await answerOf(`v1/${command}`, { given: text, ...others }, { accept }), link = document.createElement("a");
    link.href = URL.createObjectURL(await answer.blob());
    link.download = `attnviz-${suffix === "npz" ? "capture" : headName()}.${suffix}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    byId("wrong").textContent = "";
  } catch (error) {
    byId("wrong").textContent = error.message;
  }
}

const quotedForShell = (said) => /^[\w.,:/@=+-]+$/.test(said) ? said : `'${said.replaceAll("'", `'\\''`)}'`;

// what a shell types for the same picture; files have the place of their own name
function commandLine() {
  const { chat, beside, image, sound } = engine.inputs, words = ["attnviz", state.removed.length ? "ablate" : "show"];
  if (engine.model !== "builtin") words.push("--model", engine.model, ...about.options);
  words.push("--head", ...(state.removed.length ? [state.removed.map(nameOf).join(), "--together"] : [headName(), "--query", String(state.query)]));
  if (chat) words.push("--special", "--no-bos");
  if (run.queries.some(({ label }) => / \d\/\d(#\d+)?$/.test(label))) words.push("--no-chars"); // which would be counted as one
  if (beside) words.push(isSelf() ? "--text-pair" : "--target", beside);
  if (image && about.text) words.push("--image", "FILE");
  const text = about.text ? run.read : "FILE";
  if (text) words.push(...(text.startsWith("-") ? ["--"] : []), text);
  return words.map(quotedForShell).join(" ");
}

async function copyCommand() {
  byId("command").textContent = commandLine();
  try {
    await navigator.clipboard.writeText(commandLine());
    say("copied");
  } catch { /* it stands there to be marked */ }
}

// everything that follows a run or a choice
function tellRun() {
  byId("progress").textContent = "";
  tellBrings();
  byId("notes").textContent = run.notes.join(" ");
  byId("command").textContent = commandLine();
  byId("why").hidden = true;
  if (about.models.length > 1) byId("second")?.contentWindow.followText?.(run.text);
  if (inFrame) window.parent.postMessage({ attnvizPicked: { head: headName(), query: state.query, text: run.text } }, "*");
}
