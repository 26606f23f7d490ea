// Search from a file on disk. Browsers start no Worker there, so where the page is a file its script runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.waiting = [];
      document.documentElement.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => Promise.all(urls.map((next) => this.run(next)));
      this.run(url).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }
    run(url) {
      return new Promise((done, failed) => {
        const script = this.frame.contentDocument.createElement("script");
        Object.assign(script, { src: url, onload: done, onerror: failed });
        this.frame.contentDocument.documentElement.appendChild(script);
      });
    }
    postMessage(data) {
      if (this.ready) this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      else this.waiting.push(data);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
