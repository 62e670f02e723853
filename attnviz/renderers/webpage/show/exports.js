// What is taken along: links as CSV, the heatmap as PNG, the lines as SVG.

function csv() {
  // what a spreadsheet would compute is text
  const guarded = (label) => /^[=+\-@\t\r]/.test(label) ? "'" + label : label;
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

// the heatmap as it stands, with its head and its text above it
function titled() {
  const picture = document.createElement("canvas"), ratio = window.devicePixelRatio || 1, room = 44 * ratio;
  picture.width = map.width;
  picture.height = map.height + room;
  const pen = picture.getContext("2d");
  pen.fillStyle = css("--ground");
  pen.fillRect(0, 0, picture.width, picture.height);
  pen.fillStyle = css("--ink");
  pen.font = `${14 * ratio}px system-ui, sans-serif`;
  pen.fillText(titleOf(state.heads[0]), 6 * ratio, 18 * ratio, picture.width - 12 * ratio);
  pen.fillText(`${data.title} (${data.about}); 0 to ${full().toFixed(2)}`, 6 * ratio, 37 * ratio, picture.width - 12 * ratio);
  pen.drawImage(map, 0, room);
  return picture;
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
  return new Blob([new XMLSerializer().serializeToString(drawn)], { type: "image/svg+xml" });
}
