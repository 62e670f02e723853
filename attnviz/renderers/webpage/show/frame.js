// In a frame of another page, such as a notebook, the page says how tall it is, and nothing else.

function reportHeight() {
  if (window.parent === window) return;
  document.documentElement.classList.add("framed");
  const height = () => Math.ceil(document.body.getBoundingClientRect().height);
  new ResizeObserver(() => window.parent.postMessage({ attnvizHeight: height() }, "*")).observe(document.body);
}
