// Images beside the text: what a token attended to in each, and which tokens attended to a place in it.

const seen = data.seen, FINE = 640, SMALL = 160; // pixels of the longer side of what is laid over an image, and of a copy
const STRIPE = [190, 190, 190, 245], BETWEEN = [130, 130, 130, 215]; // hatches what the model never saw, on any ground
const heats = new Map(); // of each head, its levels: of each query (a row), on each patch
const stages = [...document.querySelectorAll("[data-image]")].map((stage) => ({ stage, number: Number(stage.dataset.image) }));
let heat = null; // of the first head that is shown
let place = null; // what is pointed at: { number, patches, x, y }

for (const { stage, number } of stages) {
  const { uri, width, height } = seen.images[number];
  stage.querySelector("img").src = uri;
  stage.style.flexBasis = `clamp(9rem, calc(var(--tall) * ${width / height}), 26rem)`; // no portrait beyond a screen
}

const alone = seen.keys.length > 0; // no text beside it: its patches are the tokens of the page

// the queries before `after`, from `index` on, as tokens: they may be merged
const tokensOf = (index, after) => [groupsOf("queries")[index][0], groupsOf("queries")[after - 1][1]];

function onPatches(index, after, back = false) {
  if (alone) return seen.keys.map((key) => back ? weightOf([key, key + 1], [index, after]) : weightOf([index, after], [key, key + 1]));
  const [first, last] = tokensOf(index, after), many = seen.patches.length;
  return seen.patches.map((_, patch) => {
    let sum = 0;
    for (let query = first; query < last; query++) sum += weightAt(heat[query * many + patch], seen.top);
    return sum / (last - first);
  });
}

const weightAt = (level, top) => (level / 255) ** 2 * top;

// a veil over an image, or over its copy in a canvas, which is thin where the weight of a pixel's patches is; without
// values only what was not seen is covered
function light(canvas, number, values, image = null) {
  const { width, height } = seen.images[number], fine = image ? SMALL : FINE, pen = canvas.getContext("2d");
  const scale = fine / Math.max(width, height), apart = fine / 40;
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  if (image) pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  const least = Math.min(...seen.patches.map(areaOf)), sums = new Float32Array(canvas.width * canvas.height).fill(NaN);
  seen.patches.forEach((patch, i) => {
    const [x0, x1] = [patch[1], patch[3]].map((x) => Math.round(Math.min(1, Math.max(0, x)) * canvas.width));
    const [y0, y1] = [patch[2], patch[4]].map((y) => Math.round(Math.min(1, Math.max(0, y)) * canvas.height));
    if (patch[0] !== number) return;
    for (let y = y0; y < y1; y++) for (let x = x0; x < x1; x++) {
      const at = y * canvas.width + x;
      sums[at] = (sums[at] || 0) + (values ? values[i] * least / areaOf(patch) : 0);
    }
  });
  const most = sums.reduce((most, value) => value > most ? value : most, 1e-12), laid = new ImageData(canvas.width, canvas.height);
  sums.forEach((value, at) => {
    const share = value / most, line = (at % canvas.width + Math.floor(at / canvas.width)) % apart < apart / 3;
    if (Number.isNaN(value)) laid.data.set(line ? STRIPE : BETWEEN, 4 * at);
    else if (values) laid.data.set([255 * share, 120 * share, 0, 180 - 110 * share], 4 * at);
  });
  const veil = document.createElement("canvas");
  [veil.width, veil.height] = [canvas.width, canvas.height];
  veil.getContext("2d").putImageData(laid, 0, 0);
  pen.drawImage(veil, 0, 0);
}

const areaOf = ([, x0, y0, x1, y1]) => (x1 - x0) * (y1 - y0);
const keyOf = (number) => groupsOf("keys").findIndex(([first, after]) => first <= seen.images[number].key && seen.images[number].key < after);
const patchesAt = (number, x, y) => seen.patches.flatMap(([of, x0, y0, x1, y1], i) => of === number && x >= x0 && x < x1 && y >= y0 && y < y1 ? [i] : []);

async function showImages() {
  const head = state.heads[0];
  if (!alone && !heats.has(head)) heats.set(head, unpacked("heat-" + head));
  const found = await heats.get(head);
  if (head !== state.heads[0]) return;
  heat = found;
  const token = (alone || !place) && spot && (alone || spot.token.side === "q") ? spot.token : null, back = alone && token && token.side === "k";
  const values = token && onPatches(token.index, endOf(token), back);
  for (const { stage, number } of stages) {
    if (!stage.closest("#images")) continue;
    light(stage.querySelector("canvas"), number, values);
    if (alone && token && endOf(token) === token.index + 1) frame(stage.querySelector("canvas"), seen.patches[seen.keys.indexOf(token.index)]);
    const share = token && weightOf([token.index, endOf(token)], alone ? [seen.keys[0], seen.keys.at(-1) + 1] : [keyOf(number), keyOf(number) + 1]);
    const said = Number.isNaN(share) ? "is before this image" : `→ ${share && share.toFixed(2)} on this image`;
    const told = back ? inWords(token) : token && `${quoted(tokenName(token))} ${said}`;
    stage.querySelector("figcaption").textContent = token ? told + seen.images[number].hatched : seen.images[number].about;
  }
  if (place && !alone) showPlace();
}

// the patch whose attention is shown
function frame(canvas, patch) {
  const pen = canvas.getContext("2d"), at = (edge, i) => edge * (i % 2 ? canvas.width : canvas.height);
  if (!patch) return;
  const [x0, y0, x1, y1] = patch.slice(1).map((edge, i) => at(edge, i + 1));
  for (const [color, width] of [["#000", 5], ["#fff", 2.5]]) {
    [pen.strokeStyle, pen.lineWidth] = [color, width];
    pen.strokeRect(x0, y0, x1 - x0, y1 - y0);
  }
}

// the words that attended to the place that is pointed at
function showPlace() {
  const on = (index, after) => onPatches(index, after).reduce((sum, value, i) => sum + (place.patches.includes(i) ? value : 0), 0);
  const words = [...document.querySelectorAll("#read span")].filter((word) => !data.cross || word.dataset.side === "q");
  const found = words.map((word) => ({ word, value: on(Number(word.dataset.index), Number(word.dataset.after)) }));
  const most = Math.max(1e-12, ...found.map(({ value }) => value));
  for (const { word, value } of found) {
    word.style.background = `rgb(234 88 12 / ${(value / most).toFixed(3)})`;
    word.classList.remove("on", "other");
  }
  const strongest = found.sort((a, b) => b.value - a.value).slice(0, SHOWN).filter(({ value }) => value > 0);
  const said = `this place ← ${strongest.map(({ word, value }) => `${quoted(word.textContent.trim())} ${value.toPrecision(2)}`).join(", ") || "nothing"}`;
  const { stage } = stages.find(({ stage, number }) => number === place.number && stage.closest("#images")), canvas = stage.querySelector("canvas");
  light(canvas, place.number, seen.patches.map((_, i) => place.patches.includes(i) ? 1 : 0));
  stage.querySelector("figcaption").textContent = said;
  say(said);
}

// a place in shares of an image; all views show the column of the image
function pointAt(number, x, y) {
  const patches = patchesAt(number, x, y);
  const token = alone ? { side: state.from ? "k" : "q", index: seen.keys[patches[0]] } : { side: "k", index: keyOf(number) };
  place = patches.length ? { number, patches, x, y, token } : null;
  aim(place && { token, other: null });
}

function listenToImages() {
  for (const { stage, number } of stages) {
    const box = stage.querySelector("canvas");
    if (!stage.closest("#images")) continue;
    box.addEventListener("pointermove", ({ offsetX, offsetY }) => pointAt(number, offsetX / box.clientWidth, offsetY / box.clientHeight));
    for (const gone of ["pointerleave", "blur"]) box.addEventListener(gone, () => { place = null; aim(null); });
    const keep = () => { if (alone && place) pin(place.token); };
    box.addEventListener("click", keep);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") keep();
      const step = STEPS[event.key], { x, y } = place || { x: 0.5, y: 0.5 }, within = (share) => Math.min(0.99, Math.max(0.01, share));
      if (!step) return;
      pointAt(number, within(x + step[1] / 16), within(y + step[0] / 16));
      event.preventDefault();
    });
  }
}

followers.push(showImages);
listenToImages();
