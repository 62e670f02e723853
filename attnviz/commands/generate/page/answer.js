// An answer and its sources: choosing a statement shows its own shares, and a cell says its number.

{
  const rests = data.rests; // names of columns; shares of each statement (rows) and of the whole answer
  const changes = rests.changes; // by columns, without them: of each statement
  const inside = (query) => [...byId("rests").querySelectorAll(query)];
  const shades = inside("#sources > div");
  let chosen = null; // the number of a statement; null: the whole answer

  // the shares of a statement, or of the whole answer, in bars and beside the text
  function showShares() {
    const shares = chosen === null ? rests.whole : rests.rows[chosen];
    const bars = inside("#shares [data-of]"), of = (bar) => bar.dataset.of.split(",").reduce((sum, i) => sum + shares[i], 0);
    const most = Math.max(1e-9, ...bars.map(of));
    for (const bar of bars) {
      bar.querySelector("rect").setAttribute("width", 100 * of(bar) / most);
      bar.querySelector(".share").textContent = of(bar).toFixed(2);
      const change = bar.querySelector(".change"), own = chosen !== null && changes[bar.dataset.of];
      if (change) change.textContent = own ? signed(own[chosen]) : chosen === null ? change.dataset.whole : "";
    }
    for (const part of shades) {
      const share = shares[part.dataset.column];
      part.className = `s${Math.round(rests.shades * Math.min(1, share / rests.top))}`;
      part.querySelector("b").textContent = `${rests.names[part.dataset.column]} ${share.toFixed(2)}`;
    }
    inside("#statements button").forEach((button, i) => button.setAttribute("aria-pressed", i === chosen));
    byId("of").firstChild.textContent = chosen === null ? rests.about : `In statement ${chosen + 1} alone.`;
    byId("of").lastChild.hidden = chosen === null;
    const sources = rests.sources.map(Number);
    byId("rests").dispatchEvent(new CustomEvent("chosen", { detail: chosen }));
    mark(chosen === null ? rests.strongest : sources.reduce((a, b) => shares[b] > shares[a] ? b : a, sources[0]));
  }

  const signed = (change) => `${change < -0.005 ? "−" : "+"}${Math.abs(change).toFixed(2)}`;

  // a source is marked where it stands in the text, and scrolled to within its box
  function mark(column) {
    const parts = shades.filter((part) => Number(part.dataset.column) === column);
    for (const part of shades) part.classList.toggle("here", parts.includes(part));
    if (parts.length) byId("sources").scrollTop = parts[0].offsetTop - 40;
  }

  function choose(n) {
    chosen = n === chosen ? null : n;
    showShares();
  }

  // `statement 2 → letter: 0.81 of its attention`, and what its deletion changes, where that was measured
  function tellCell({ target }) {
    const cell = target.closest && target.closest("#matrix td");
    if (!cell) return;
    const row = cell.parentNode.rowIndex - 1, of = cell.dataset.of, change = changes[of];
    const name = inside("#matrix thead th")[cell.cellIndex].textContent;
    const said = change ? `; without it, statement ${row + 1} changes by ${signed(change[row])} nats` : "";
    byId("cell").textContent = `Statement ${row + 1} → ${name}: ${cell.textContent} of its attention${said}.`;
  }

  function moveInMatrix(event) {
    const cell = event.target.closest("td"), step = STEPS[event.key];
    if (!cell || !step) return;
    const next = byId("matrix").querySelector("table").rows[cell.parentNode.rowIndex + step[0]]?.cells[cell.cellIndex + step[1]];
    event.preventDefault();
    if (!next || next.tagName !== "TD") return;
    [cell.tabIndex, next.tabIndex] = [-1, 0];
    next.focus();
  }

  inside("#statements button").forEach((button, i) => button.addEventListener("click", () => choose(i)));
  byId("of").lastChild.addEventListener("click", () => choose(null));
  for (const kind of ["pointerover", "focusin"]) byId("matrix").addEventListener(kind, tellCell);
  byId("matrix").addEventListener("keydown", moveInMatrix);
  byId("shares").addEventListener("click", ({ target }) => {
    if (target.matches("button")) mark(Number(target.closest("tr").dataset.of));
  });
  byId("rests").addEventListener("keydown", ({ key }) => { if (key === "Escape" && chosen !== null) choose(null); });
  showShares();
}
