// The service worker, which serves the app without a network. `offline.mjs` fills in the constants.
//
// A cache contains exactly the files of one build, and is complete before it is used. A page from a cache therefore never
// requests a file of another build.

/** The files whose names contain a hash of their content, and the others: their paths and digests. */
const HASHED = {};
const OTHERS = {};
/** The page of each route, which is a path in `OTHERS`. */
const PAGES = {};
const VERSION = "";

// Other copies of the app on the same host have caches of their own.
const OURS = `trainplan ${registration.scope} `;
const CACHE = OURS + VERSION;

addEventListener("install", (event) => event.waitUntil(fill()));
addEventListener("activate", (event) => event.waitUntil(takeOver()));
addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  const path = url.startsWith(registration.scope) ? url.slice(registration.scope.length).split(/[?#]/)[0] : null;
  if (method !== "GET" || path === null || /^api(\/|$)/.test(path)) return;
  if (Object.hasOwn(HASHED, path)) event.respondWith(cached(event, path));
  else if (Object.hasOwn(OTHERS, path)) event.respondWith(newest(event, path));
  else if (mode === "navigate") event.respondWith(newest(event, page(path)));
});

/** Fetches the files that are not in the cache yet: an earlier attempt may have failed halfway. */
async function fill() {
  const cache = await caches.open(CACHE);
  // One after the other and with low priority, because the page may still be loading.
  for (const [path, integrity] of Object.entries({ ...HASHED, ...OTHERS })) {
    if (await cache.match(address(path))) continue;
    const response = await fetch(address(path), {
      cache: Object.hasOwn(HASHED, path) ? "default" : "no-cache",
      // Fails if a newer build is being copied to the host.
      integrity,
      priority: "low",
    });
    // Browsers refuse a redirected response as a page.
    await cache.put(address(path), response.redirected ? new Response(response.body, response) : response);
  }
  // Open pages may still request files of their own build. Those come from the host, as without a service worker.
  await skipWaiting();
}

async function takeOver() {
  const old = (await caches.keys()).filter((name) => name.startsWith(OURS) && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
  // Requests a page from the host while this worker starts.
  await registration.navigationPreload?.enable();
  await clients.claim();
}

/** Answers with the file in the cache, or the host's if the browser has removed it from the cache. */
async function cached(event, path) {
  return (await find(path)) ?? fetch(event.request);
}

/** Answers with the host's file, or the one in the cache if the host can't be reached. */
async function newest(event, path) {
  try {
    return (await event.preloadResponse) ?? (await fetch(event.request));
  } catch (error) {
    const copy = await find(path);
    if (copy) return copy;
    throw error;
  }
}

/** Returns the page that a host of files would send for a path. */
function page(path) {
  const route = path.replace(/\/?(index\.html)?$/, "");
  return Object.hasOwn(PAGES, route) ? PAGES[route] : PAGES[""];
}

async function find(path) {
  const cache = await caches.open(CACHE);
  return cache.match(address(path), { ignoreVary: true });
}

function address(path) {
  return new URL(path, registration.scope).href;
}
