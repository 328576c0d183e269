
// Tells the programs when the system's theme changes, so that they draw their charts again (theme.rs).
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("schemechange")));

// Closes open menus on a click elsewhere and on Escape, which moves the focus back to the menu's button.
function closeMenus(event) {
  const { key, type, target } = event;
  const isEscape = key === "Escape" && !event.defaultPrevented;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (isEscape) {
      // A note takes the next one.
      event.preventDefault();
      menu.querySelector("summary").focus();
    }
    if (isEscape || (type === "click" && !menu.contains(target))) menu.open = false;
  }
}
addEventListener("click", closeMenus);
addEventListener("keydown", closeMenus);

// Opens the command palette for its keys and its button. Once it was fetched, it opens at once, so that it gets what is typed next.
let palette;
function askPalette(event) {
  const { type, key, target } = event;
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  const isKey = ((event.ctrlKey || event.metaKey) && key?.toLowerCase() === "k") || (key === "?" && !isTyping);
  if (type === "click" ? !target.closest?.(".commands") : !isKey) return;
  event.preventDefault();
  if (palette) palette.open();
  // Without a network, it may not be stored.
  else import("./palette.js").then((fetched) => (palette = fetched).open(), () => {});
}
addEventListener("click", askPalette);
addEventListener("keydown", askPalette);

// Registers the service worker, which stores the app for use without a network. It waits for the first answers, whose files
// have priority. Browsers offer service workers over HTTPS and on localhost only; elsewhere, the page works without one.
const AFTER_LOADING_MS = 3000;
async function register() {
  try {
    if (!navigator.connection?.saveData) await navigator.serviceWorker?.register(new URL("sw.js", import.meta.url));
  } catch {
    // For example if the user blocks storage.
  }
}
const registerLater = () => setTimeout(() => (window.requestIdleCallback ?? setTimeout)(register), AFTER_LOADING_MS);
if (document.readyState === "complete") registerLater();
else addEventListener("load", registerLater);
