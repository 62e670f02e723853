// The cell of a notebook: a frame that can reach nothing, and passes its questions on to the kernel.

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts allow-downloads";
  frame.srcdoc = model.get("_page");
  frame.style.cssText = "width: 100%; height: 52rem; border: 0; resize: vertical";
  el.append(frame);
  const heard = ({ data, source }) => {
    if (source !== frame.contentWindow || !data) return;
    if (data.attnvizAsks) model.send(data.attnvizAsks);
    if (!data.attnvizPicked) return;
    for (const [name, value] of Object.entries(data.attnvizPicked)) model.set(name, value);
    model.save_changes();
  };
  const told = (message, buffers) => {
    const [part] = buffers ?? [];
    frame.contentWindow?.postMessage({ attnvizTells: { ...message, part: part && new Uint8Array(part.buffer, part.byteOffset, part.byteLength) } }, "*");
  };
  addEventListener("message", heard);
  model.on("msg:custom", told);
  return () => {
    removeEventListener("message", heard);
    model.off("msg:custom", told);
  };
}

export default { render };
