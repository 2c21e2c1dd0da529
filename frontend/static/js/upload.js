// Sends a file with its progress in bytes. Without this script the form works as it is.

function size(bytes) {
  if (bytes < 1e3) return `${bytes} bytes`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function send(event) {
  event.preventDefault();
  const form = event.currentTarget;
  if (!form.reportValidity()) return;
  const box = form.querySelector("[data-progress]");
  const bar = box.querySelector("progress");
  const words = box.querySelector("[data-progress-words]");
  const button = form.querySelector("button");
  const request = new XMLHttpRequest();
  const stop = (message) => { button.disabled = false; words.textContent = message; };
  request.open("POST", form.action);
  request.responseType = "document";
  request.upload.onprogress = ({ loaded, total }) => {
    bar.value = total ? (100 * loaded) / total : 0;
    words.textContent = loaded < total ? `${size(loaded)} of ${size(total)} sent` : `${size(total)} sent; the file is being encrypted and stored.`;
  };
  request.onerror = () => stop("The connection was lost and nothing was stored. Check that Counterpoise is running, then upload again.");
  request.onload = () => {
    if (request.responseURL && new URL(request.responseURL).pathname !== location.pathname) { location.assign(request.responseURL); return; }
    const main = request.response?.querySelector("main");
    if (!main) { stop("The file was not taken and no reason came back. Upload again, or tell the operator."); return; }
    document.querySelector("main").replaceWith(main);
    document.querySelector("main").focus();
    start();
  };
  button.disabled = true;
  box.hidden = false;
  request.send(new FormData(form));
}

function start() {
  const form = document.querySelector("form[data-upload]");
  if (!form) return;
  const input = form.querySelector("#file");
  const drop = form.querySelector("[data-drop]");
  form.addEventListener("submit", send);
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
  });
}

start();
