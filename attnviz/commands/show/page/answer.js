// Which tokens a token attends to, and in which heads most: three short lists, over all heads.

const SHOWN = 5; // rows of a list
const AHEAD = 16; // heads that are unpacked at once
const lists = {}; // by name, the rows: buttons that stay, whatever they say

function makeAnswer() {
  for (const name of ["here", "heads", "anywhere"]) {
    lists[name] = Array.from({ length: SHOWN + (name === "heads" ? 1 : 0) }, () => {
      const row = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.append(...["span", "i", "b"].map((part) => document.createElement(part)));
      row.append(button);
      byId(name).append(row);
      return button;
    });
  }
}

// rows: { label, value, on, press }
function fillList(name, title, rows) {
  byId(name + "-title").textContent = title;
  lists[name].forEach((button, i) => {
    const row = rows[i], [label, bar, number] = button.children;
    button.style.visibility = row ? "visible" : "hidden";
    if (!row) return;
    label.textContent = row.label;
    label.title = row.label;
    bar.style.setProperty("--share", Math.min(1, row.value / full()).toFixed(3));
    number.textContent = row.value.toFixed(2);
    button.setAttribute("aria-pressed", String(Boolean(row.on)));
    button.onclick = row.press;
  });
}

// what the token that all views show attends to in the first head; other heads follow
function tell() {
  byId("answer").classList.toggle("idle", !spot); // its place is kept
  if (!spot) return compare(null);
  const { token, other } = spot, names = labelsOf(SIDES[across(token.side)]), strongest = strongestOf(token);
  const told = strongest.slice(0, SHOWN), mine = strongest.findIndex(({ index }) => index === other);
  if (mine >= SHOWN) told.splice(SHOWN - 1, 1, strongest[mine]);
  fillList("here", `${subject(token)}, in ${patterns[0].name}`, told.map(({ index, value }) => ({
    label: names[index], value, on: index === other, press: () => pinWith(token, index),
  })));
  compare(token, other);
}

const subject = (token) => `“${tokenName(token)}” ${token.side === "q" ? "attends to" : "is attended to by"}`;

function pinWith(token, other) {
  Object.assign(state, { pin: token, other });
  aimed = null;
  return refresh({ keepView: true });
}

let comparisons = 0;

// the same in every head: exact, as it is read from the weights of the page
async function compare(token, other) {
  const mine = ++comparisons, profiles = [];
  if (!token) return showPair([]);
  for (const head of data.heads.keys()) {
    if (head % AHEAD === 0) for (let next = head; next < Math.min(head + AHEAD, data.heads.length); next++) levelsOf(next);
    const levels = await levelsOf(head);
    if (mine !== comparisons) return;
    profiles.push(profileOf(levels, token));
    await breathe();
  }
  if (mine !== comparisons) return;
  const names = labelsOf(SIDES[across(token.side)]);
  rankHeads(token, other, names, profiles);
  rankAnywhere(token, names, profiles);
  document.body.dataset.compared = [token.side + token.index, other].join();
}

function rankHeads(token, other, names, profiles) {
  const pair = profiles.map((profile) => other === null ? NaN : profile[other]);
  showPair(pair);
  const ranked = pair.map((value, head) => ({ head, value })).filter(({ value }) => shown(value)).sort((a, b) => b.value - a.value);
  const rows = ranked.map(({ head, value }, i) => ({
    label: `${i + 1}. ${data.heads[head].label}`, value, on: state.heads.includes(head), press: () => {
      Object.assign(state, { pin: token, other });
      choose(head, false);
    },
  }));
  const mine = rows.findIndex((row) => row.on);
  const told = mine >= SHOWN ? [...rows.slice(0, SHOWN), rows[mine]] : rows.slice(0, SHOWN + 1);
  const [from, to] = token.side === "q" ? [tokenName(token), names[other]] : [names[other], tokenName(token)];
  const title = other === null ? "No link is shown" : `“${from}” → “${to}” `;
  fillList("heads", other === null ? title : title + (pair.every(Number.isNaN) ? "is masked in every head" : "by head"), told);
}

// for each token on the other side, the head with the strongest link
function rankAnywhere(token, names, profiles) {
  const best = names.map((label, index) => {
    const head = profiles.reduce((most, profile, i) => most < 0 || !(profile[index] <= profiles[most][index]) ? i : most, -1);
    return { label, index, head, value: profiles[head][index] };
  });
  const told = best.filter(({ value }) => shown(value)).sort((a, b) => b.value - a.value).slice(0, SHOWN);
  fillList("anywhere", `${subject(token)}, in ${data.heads.length > 1 ? "any head" : data.heads[0].label}`, told.map(({ label, index, head, value }) => ({
    label: `${label} · ${data.heads[head].label}`, value, on: state.heads.includes(head), press: () => {
      state.heads = [head];
      pinWith(token, index);
    },
  })));
}

// under each thumbnail a bar: how much that head attends from the one token to the other
function showPair(values) {
  data.heads.forEach((_, head) => {
    const bar = cellOf(head).lastChild;
    bar.style.width = `${(100 * Math.min(1, (values[head] || 0) / full())).toFixed(1)}%`;
  });
}
