// Vectors as strips: a cell for each number, blue below zero and red above, stronger for more; with the numbers on demand.

// the colours of zero, of the lowest and of the highest number
const signedNow = () => data.colors.signed[themeOf(state.theme)];

// the colour of a number from −1 to 1
function signed(value, [zero, below, above] = signedNow()) {
  const far = Math.min(1, Math.abs(value));
  return zero.map((start, i) => Math.round(start + ((value < 0 ? below : above)[i] - start) * far));
}

const largest = (...vectors) => vectors.reduce((most, vector) => vector.reduce((top, value) => Math.max(top, Math.abs(value)), most), 0) || 1;

// a strip, whose strongest colour is `most`; `name` is that of the vector
function strip(vector, most, name) {
  const canvas = made("canvas", { class: "strip", width: vector.length, height: 1, role: "img", "aria-label": `${name}: ${amount(vector.length, "number")}` });
  const pixels = new ImageData(vector.length, 1), colors = signedNow();
  pixels.data.fill(255);
  vector.forEach((value, i) => pixels.data.set(signed(value / most, colors), 4 * i));
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  canvas.values = { vector, name };
  return canvas;
}

// `q(creature)` or `from creature`, its strip, and its numbers where they are wanted
function vectorRow(name, of, vector, most, key = null) {
  const [open, close] = name.endsWith(" ") ? ["", ""] : ["(", ")"], label = of === null ? name : name + open + of + close;
  const row = made("div", { class: "vector", "data-key": key, tabindex: key === null ? null : -1, role: key === null ? null : "option" },
    made("span", { class: "name", title: label }, name, ...(of === null ? [] : [open, bare(of), close])), strip(vector, most, label));
  if (state.numbers) row.append(made("code", {}, Array.from(vector, (value) => number(value)).join(" ")));
  return row;
}

// rows for several keys, of which one is chosen with the arrows
const keyList = (name, ...rows) => made("div", { class: "keys", role: "listbox", "aria-label": name }, ...rows);

// the legend of a group of strips
function scaleOf(most) {
  const ends = made("i", { class: "signed" });
  ends.style.background = `linear-gradient(to right, ${[-1, 0, 1].map((value) => `rgb(${signed(value).join(" ")})`).join(", ")})`;
  return made("p", { class: "scale" }, number(-most, 2), ends, number(most, 2));
}

// which number of a strip the pointer is at
function numberAt(event) {
  const { vector, name } = event.target.values;
  const index = Math.max(0, Math.min(vector.length - 1, Math.floor(vector.length * event.offsetX / event.target.clientWidth)));
  note(event.target, made("code", {}, `${name}[${index}] = ${number(vector[index], Math.max(4, state.digits))}`));
}

function listenToStrips() {
  document.addEventListener("pointermove", (event) => {
    if (event.target.values) numberAt(event);
  });
  document.addEventListener("pointerout", (event) => {
    if (event.target === explained && explained.values) hideNote();
  });
}
