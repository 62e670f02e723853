// Images of an answer: what each statement attended to, small beside it, and large among the sources.

{
  const rests = data.rests, many = seen.patches.length, list = byId("statements"), buttons = [...list.querySelectorAll("button")];
  const large = [...document.querySelectorAll("#sources [data-image]")].map((stage) => [stage, Number(stage.dataset.image)]);
  let shown = buttons.length; // the row of the whole answer, or of a statement

  // a picture for each image in each statement; a place of a large one marks the statements that attended to it
  function show(values) {
    const light_ = (row) => large.forEach(([stage, number]) => light(stage.querySelector("canvas"), number, values(row)));
    buttons.forEach((button, row) => {
      const small = document.createElement("span");
      small.append(...large.map(([stage, number]) => {
        const canvas = document.createElement("canvas");
        light(canvas, number, values(row), stage.querySelector("img"));
        return canvas;
      }));
      button.append(small);
      for (const kind of ["pointerenter", "focus"]) button.addEventListener(kind, () => light_(row));
      for (const kind of ["pointerleave", "blur"]) button.addEventListener(kind, () => light_(shown));
    });
    for (const [stage, number] of large) {
      const canvas = stage.querySelector("canvas");
      canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => {
        const patches = patchesAt(number, offsetX / canvas.clientWidth, offsetY / canvas.clientHeight);
        const sums = buttons.map((_, row) => patches.reduce((sum, i) => sum + values(row)[i], 0)), most = Math.max(1e-12, ...sums);
        buttons.forEach((button, row) => button.classList.toggle("lit", sums[row] > most / 2));
      });
      canvas.addEventListener("pointerleave", () => buttons.forEach((button) => button.classList.remove("lit")));
    }
    byId("rests").addEventListener("chosen", ({ detail }) => light_(shown = detail ?? buttons.length));
    light_(shown);
  }

  Promise.all([inflated(rests.heat), ...large.map(([stage]) => stage.querySelector("img").decode())]).then(([levels]) => {
    show((row) => Array.from(levels.subarray(row * many, (row + 1) * many), (level) => weightAt(level, rests.heatTop)));
  });
}
