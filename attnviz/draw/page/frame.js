// In a frame of another page, such as a notebook, the page says how tall it is, and nothing else.

const inFrame = window.parent !== window;
if (inFrame) document.documentElement.classList.add("framed");

function reportHeight() {
  if (!inFrame) return;
  window.parent.postMessage({ attnvizHeight: Math.ceil(document.body.getBoundingClientRect().height) }, "*");
}

// nothing is observed of a frame that is out of sight, so that a page is measured as well when it is made
function keepReporting() {
  reportHeight();
  new ResizeObserver(reportHeight).observe(document.body);
}
