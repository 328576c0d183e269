
// Tells the programs when the system's theme changes, so that they draw their charts again (theme.rs).
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("schemechange")));

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
