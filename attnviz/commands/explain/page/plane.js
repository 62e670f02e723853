// How a token's vector gets its meaning: its trajectory from the embedding, addition by addition, in the plane of two read-outs.

const PLANE = { width: 560, height: 430, edge: 46 }, MOST_NAMED = 7, FAR_MOVE = 0.06; // the least share of the plane that a named addition moves

// the maps of the last layer at which all read-outs of a kind read something in the stream before it, as explain -o has them
function planeOf(query) {
  const first = data.live ? null : data.readouts.find((each) => isFor(each, query));
  if (!first) return null;
  const kin = data.readouts.filter(({ queries }) => String(queries) === String(first.queries)).slice(0, 2);
  const useful = kin.map(({ heads, chance }) => heads.filter(({ right }) => right[0] > chance + NEAR_CHANCE));
  const shared = useful[0].map(({ layer }) => layer).filter((layer) => useful.every((heads) => heads.some((at) => at.layer === layer)));
  const layer = Math.max(0, ...shared);
  return layer && { layer, kin: kin.map((readout, i) => ({ readout, at: useful[i].find((at) => at.layer === layer) })) };
}

// the likeliest classes at x, each against “none” or the mean of all, as directions (d + 1)
function axesOf({ readout: { name, classes }, at: { maps, right } }, x, many) {
  const none = classes.indexOf("none"), column = (j) => Float64Array.from({ length: x.length + 1 }, (_, i) => maps[i * classes.length + j]);
  const columns = classes.map((_, j) => column(j)), mean = columns[0].map((_, i) => columns.reduce((sum, each) => sum + each[i], 0) / classes.length);
  const logits = columns.map((each) => along(each, x, each.at(-1))), order = [...classes.keys()].sort((a, b) => logits[b] - logits[a]);
  const read = readOut(maps, 0, x, classes), said = read.probability < SURE ? `${name} unsure` : read.said === "none" ? `no ${name} (right ${share(right[0])})` : `${name} ${read.said} (right ${share(right[0])})`;
  return order.filter((j) => j !== none).slice(0, many).map((j) => ({
    label: classes[j], said, right: right[0],
    name: `${classes[j]} rather than ${none < 0 ? "the mean of all classes (logit)" : `no ${name} (log-odds)`}`,
    direction: columns[j].map((value, i) => value - (none < 0 ? mean : columns[none])[i]),
  }));
}

const along = (direction, vector, start = 0) => vector.reduce((sum, value, i) => sum + value * direction[i], start);

// what is added to the query's vector below a layer, in order; b_O counts with the MLP behind it
function additionsOf(query, end) {
  const at = (array) => vectorOf(array, query, run.queries.length), x = (layer) => at(run.layers[layer].x);
  const parts = run.embedding && run.position ? [{ name: "embedding", vector: at(run.embedding) }, { name: "position", vector: at(run.position) }] : [{ name: "embedding", vector: x(0) }];
  for (let layer = 0; layer < end; layer++) {
    const heads = Array.from({ length: headsOf(layer) }, (_, head) => ({ name: nameOf([layer, head]), head: true, vector: engine.added(run, layer, head, query) }));
    parts.push(...heads, { name: `L${layer} MLP`, vector: heads.reduce((rest, { vector }) => minus(rest, vector), minus(x(layer + 1), x(layer))) });
  }
  return parts;
}

function trajectory() {
  const plane = planeOf(spot.query);
  if (!plane) return [];
  const end = vectorOf(run.layers[plane.layer].x, spot.query, run.queries.length), axes = plane.kin.flatMap((each) => axesOf(each, end, 3 - plane.kin.length)), stops = [];
  if (axes.length < 2) return []; // a read-out of one class
  for (const part of additionsOf(spot.query, plane.layer)) {
    const moved = axes.map(({ direction }) => along(direction, part.vector)), from = stops.at(-1)?.place ?? axes.map(({ direction }) => direction.at(-1));
    stops.push({ ...part, moved, from, place: from.map((value, i) => value + moved[i]) });
  }
  const own = stops.find(({ name }) => name === headName()), of = [...new Set(axes.map(({ said }) => said))];
  const told = own ? [`${headName()} moves it by ${own.moved.map((value, i) => `${value < 0 ? "−" : "+"}${number(Math.abs(value), 2)} (${axes[i].label})`).join(" and ")}.`] : [`${headName()} adds to it only later.`];
  return [
    made("h4", {}, "How ", word(queryLabel()), " gets its meaning"),
    sentence`Each line is what one part adds to its vector. Behind all heads below it, before layer ${plane.layer}, it reads as: ${of.join(", ")}. ${told}`,
    drawPlane(stops, axes, plane.layer),
    aside(...plane.kin.map(({ readout, at }) => [`${readout.name}: right for ${share(at.right[0])} of ${readout.n} held-out words before layer ${plane.layer} (`, term("chance"), ` ${share(readout.chance)}, from the token alone ${share(readout.token)}). `]).flat(), "This was measured at the last point alone; those before it are projections. Dotted: position and MLPs, with b_O."),
  ];
}

function drawPlane(stops, axes, layer) {
  const { width, height, edge } = PLANE, ends = [0, 1].map((i) => [Math.min(0, ...stops.map(({ place }) => place[i])), Math.max(0, ...stops.map(({ place }) => place[i]))]);
  const unit = Math.min(...ends.map(([low, high], i) => ([width, height][i] - 2 * edge) / (high - low))); // the same on both axes
  const middle = ends.map(([low, high]) => (low + high) / 2), to = ([a, b]) => [width / 2 + (a - middle[0]) * unit, height / 2 - (b - middle[1]) * unit];
  const svg = element("svg", { class: "plane", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${axes.map(({ name }) => name).join("; ")}: from the embedding to the stream before layer ${layer}` });
  const [x0, y0] = to([0, 0]);
  svg.append(element("line", { class: "zero", x1: 0, x2: width, y1: y0, y2: y0 }), element("line", { class: "zero", x1: x0, x2: x0, y1: 0, y2: height }));
  svg.append(element("text", { class: "axis", x: width - 4, y: height - 4, "text-anchor": "end" }, `${axes[0].name} →`), element("text", { class: "axis", x: 4, y: 12 }, `↑ ${axes[1].name}`));
  for (const { name, head, from, place, moved } of stops.slice(1)) {
    const [[x1, y1], [x2, y2]] = [to(from), to(place)], line = element("line", { x1, y1, x2, y2, class: name === headName() ? "own" : head ? "head" : "rest" });
    line.append(element("title", {}, `${name}: ${moved.map((value, i) => `${number(value, 2)} ${axes[i].label}`).join(", ")}`));
    svg.append(line, element("circle", { cx: x2, cy: y2, r: 2 }));
  }
  const far = stops.slice(1).map(({ name, from, place }) => ({ name, from: to(from), to: to(place) })).map((each) => ({ ...each, far: Math.hypot(each.to[0] - each.from[0], each.to[1] - each.from[1]) }));
  const named = far.filter(({ far: moves }) => moves > FAR_MOVE * width).sort((a, b) => b.far - a.far).slice(0, MOST_NAMED).map(({ name, from, to: at }) => ({ name, at: [(from[0] + at[0]) / 2, (from[1] + at[1]) / 2] }));
  const placed = [];
  for (const { name, at: [x, y] } of [{ name: "embedding", at: to(stops[0].place) }, { name: `before layer ${layer}`, at: to(stops.at(-1).place) }, ...named]) {
    const side = x > width * 0.75 ? -1 : 1, free = [4, 18, -10].map((down) => [x + 9 * side, y + down]).find(([a, b]) => placed.every(([c, d]) => Math.abs(a - c) > 90 || Math.abs(b - d) > 15));
    if (!free) continue;
    placed.push(free);
    svg.append(element("text", { x: free[0], y: free[1], "text-anchor": side < 0 ? "end" : "start" }, name));
  }
  svg.append(...[[stops[0], "start"], [stops.at(-1), "end"]].map(([{ place }, kind]) => element("circle", { cx: to(place)[0], cy: to(place)[1], r: 5, class: kind })));
  return svg;
}
