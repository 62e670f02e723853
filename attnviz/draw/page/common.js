"use strict";
// What both pages share: the data, colours, keys, and elements of SVG.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const NS = "http://www.w3.org/2000/svg";

function element(name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// weights have the colours of the theme: none is near the ground's colour, most is far from it
const colorsNow = () => data.colors[themeOf(state.theme)];

function colorOf(share) {
  const colors = colorsNow(), at = Math.min(1, Math.max(0, share)) * (colors.length - 1);
  const low = colors[Math.floor(at)], high = colors[Math.ceil(at)];
  return low.map((value, i) => Math.round(value + (high[i] - value) * (at % 1)));
}

// the bytes of a text that was deflated and written in base64
async function inflated(text) {
  const letters = atob(text), packed = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// the theme that was chosen, or the browser's
const themeOf = (theme) => theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

// what a button that switches between light and dark makes of the theme
const otherTheme = (theme) => themeOf(theme) === "dark" ? "light" : "dark";

function showTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  const steps = colorsNow().map((color) => `rgb(${color.join(" ")})`);
  document.querySelector("#scale i").style.background = `linear-gradient(to right, ${steps.join(", ")})`;
}

