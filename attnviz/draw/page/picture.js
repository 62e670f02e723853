// Weights as pixels. The page says what is `shown`, and which weight has the `full` colour.

const pixels = {}; // of each theme

// one colour for each of 1024 steps, as the four bytes of a pixel
const pixelsNow = () => pixels[themeOf(state.theme)] ||= Uint32Array.from({ length: 1024 }, (_, step) => {
  const [red, green, blue] = colorOf(step / 1023);
  return new Uint32Array(new Uint8ClampedArray([red, green, blue, 255]).buffer)[0];
});

// A picture of a pixel a value, which is clear where there is nothing: masked, or under the threshold.
function pictureOf(rows, columns, valueAt) {
  const picture = document.createElement("canvas");
  [picture.width, picture.height] = state.turn ? [rows, columns] : [columns, rows];
  const made = new ImageData(picture.width, picture.height), drawn = new Uint32Array(made.data.buffer), colors = pixelsNow();
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
    const value = valueAt(row, column);
    if (shown(value)) drawn[state.turn ? column * rows + row : row * columns + column] = colors[Math.max(0, Math.min(1023, Math.round(1023 * value / full())))];
  }
  picture.getContext("2d", { willReadFrequently: true }).putImageData(made, 0, 0);
  return picture;
}
