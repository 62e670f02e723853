// A browser starts no worker from a disk. There a frame of its own does the work of the search.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = Object.assign(document.createElement("iframe"), { hidden: true });
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = Object.assign(inside.document.createElement("script"), { src: address });
      this.loaded = new Promise((done) => script.addEventListener("load", done));
      inside.document.body.append(script);
    }
    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
