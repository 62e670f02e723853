// What is taken along: links as CSV, the heatmap as PNG, the lines as SVG.

function csv() {
  // what a spreadsheet would compute is text; marks of direction are for the eye
  const guarded = (marked, label = marked.replaceAll("\u200e", "")) => /^[=+\-@\t\r]/.test(label) ? "'" + label : label;
  const cell = (given, label = guarded(given)) => /[",\n\r]/.test(label) ? `"${label.replaceAll('"', '""')}"` : label;
  const rows = patterns.flatMap((pattern) => {
    const found = [];
    for (let query = 0; query < pattern.rows; query++) for (let key = 0; key < pattern.columns; key++) {
      const value = weight(pattern, query, key);
      if (shown(value)) found.push([pattern.name, query, cell(labelsOf("queries")[query]), key, cell(labelsOf("keys")[key]), value.toFixed(DIGITS)].join(","));
    }
    return found;
  });
  return ["head,query,query_token,key,key_token,weight", ...rows].join("\n") + "\n";
}

function save(blob, suffix) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `attnviz-${patterns[0].name}.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// the heatmap as it stands, with its head and its text above it, in as many lines as they need
function titled() {
  const picture = document.createElement("canvas"), ratio = window.devicePixelRatio || 1, high = 20;
  pen.font = fontOf(14);
  const width = map.clientWidth - 12, about = `${data.title} (${data.about}); 0 to ${full().toFixed(2)}`;
  const lines = [titleOf(state.heads[0]), about].flatMap((said) => folded(said, width));
  const room = (lines.length * high + 4) * ratio;
  picture.width = map.width;
  picture.height = map.height + room;
  const onto = picture.getContext("2d");
  onto.fillStyle = css("--ground");
  onto.fillRect(0, 0, picture.width, picture.height);
  onto.fillStyle = css("--ink");
  onto.font = fontOf(14 * ratio);
  lines.forEach((line, i) => onto.fillText(line, 6 * ratio, (i * high + 16) * ratio));
  onto.drawImage(map, 0, room);
  return picture;
}

// a sentence in lines of a width, in the font of the pen
function folded(sentence, width) {
  return sentence.split(" ").reduce((lines, word) => {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && pen.measureText(longer).width <= width) return [...lines.slice(0, -1), longer];
    return [...lines, clipped(word, width)];
  }, []);
}

async function copy() {
  try {
    await navigator.clipboard.writeText(csv());
    say("copied");
  } catch {
    save(new Blob([csv()], { type: "text/csv" }), "csv");
  }
}

function svg() {
  const drawn = byId("columns").firstChild.cloneNode(true);
  drawn.setAttribute("xmlns", NS);
  drawn.setAttribute("font-family", "sans-serif");
  drawn.setAttribute("font-size", "12");
  for (const name of drawn.querySelectorAll(".on, .other")) {
    name.setAttribute("font-weight", "700"); // no style sheet goes along
    name.setAttribute("fill", css("--mark"));
  }
  return new Blob([new XMLSerializer().serializeToString(drawn)], { type: "image/svg+xml" });
}
