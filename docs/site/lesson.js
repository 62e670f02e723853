// The lesson in a frame has the colours of the page around it: the fragment of its address says
// which, and another query has the browser read it again.
const lesson = document.querySelector("iframe.lesson");
if (lesson) {
  const { src } = lesson;
  let shown;
  const follow = () => {
    const theme = document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
    if (theme === shown) return;
    const address = `${src}?${theme}#theme=${theme}`;
    if (shown) lesson.contentWindow.location.replace(address); // the way back stays as it was
    else lesson.src = address;
    shown = theme;
  };
  new MutationObserver(follow).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  follow();
}
