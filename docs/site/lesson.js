// The lesson in a frame has the colours of the page around it, which tells it of them; it is not read again, and keeps
// what was typed.
const lesson = document.querySelector("iframe.lesson");
if (lesson) {
  const theme = () => document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
  const tell = () => lesson.contentWindow.postMessage({ theme: theme() }, "*");
  lesson.src += `#theme=${theme()}`;
  lesson.addEventListener("load", tell);
  new MutationObserver(tell).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
}
