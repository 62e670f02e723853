// The pointer, fingers, the wheel and keys over the heatmap.

const FAR = 4; // pixels: who moves on from where the button went down drags

function listenToMap() {
  let drag = null;
  const fingers = new Map(); // on the map, each where it is
  const apart = () => {
    const [one, other] = [...fingers.values()];
    return other ? { far: Math.hypot(one.x - other.x, one.y - other.y), x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 } : null;
  };
  map.addEventListener("pointermove", (event) => {
    const here = { x: event.offsetX, y: event.offsetY };
    if (fingers.has(event.pointerId)) {
      const before = apart();
      fingers.set(event.pointerId, here);
      const now = apart();
      if (now) return pinch(before, now);
    }
    if (!drag) return aimAtCell(cellAt(here.x, here.y));
    drag.moved ||= Math.hypot(here.x - drag.from.x, here.y - drag.from.y) > FAR;
    if (view.fitted || !drag.moved) return;
    view.x -= here.x - drag.at.x;
    view.y -= here.y - drag.at.y;
    drag.at = here;
    drawMap();
  });
  map.addEventListener("pointerdown", (event) => {
    const here = { x: event.offsetX, y: event.offsetY };
    drag = { from: here, at: here, moved: false };
    if (event.pointerType === "touch") fingers.set(event.pointerId, here);
  });
  map.addEventListener("pointerup", (event) => {
    const cell = drag && !drag.moved && fingers.size < 2 && cellAt(event.offsetX, event.offsetY);
    if (cell) pinCell(cell);
  });
  for (const gone of ["pointerup", "pointercancel"]) map.addEventListener(gone, (event) => {
    fingers.delete(event.pointerId);
    drag = null;
  });
  map.addEventListener("pointerleave", () => { drag = null; aimAtCell(null); });
  map.addEventListener("blur", () => aimAtCell(null));
  map.addEventListener("wheel", turnWheel, { passive: false });
  map.addEventListener("keydown", pressOnMap);
}

function pinch(before, now) {
  view.x -= now.x - before.x;
  view.y -= now.y - before.y;
  zoom(now.far / Math.max(1, before.far), now.x, now.y);
}

function pinCell(cell) {
  const { token, other } = focusOf(cell);
  pin(token, other);
  if (view.cellAimed) say(toldOf({ token, other }));
}

function turnWheel(event) {
  if (event.ctrlKey) {
    event.preventDefault();
    return zoom(Math.exp(-event.deltaY / 200), event.offsetX, event.offsetY);
  }
  const { x, y } = view;
  view.x += event.deltaX;
  view.y += event.deltaY;
  drawMap();
  if (view.x !== x || view.y !== y) event.preventDefault(); // else the page scrolls
}

function pressOnMap(event) {
  if (STEPS[event.key]) {
    const { row, column } = view.cellAimed || { row: 0, column: 0 }, [down, across] = STEPS[event.key];
    const clamp = (value, most) => Math.max(0, Math.min(most - 1, value));
    const cell = { row: clamp(row + down, picture.height), column: clamp(column + across, picture.width) };
    follow(cell);
    aimAtCell(cell);
  } else if (event.key === "+") zoom(1.25);
  else if (event.key === "-") zoom(0.8);
  else if (event.key === "Enter" && view.cellAimed) pinCell(view.cellAimed);
  else if (event.key === "Escape") pin(null);
  else return;
  event.preventDefault();
}
