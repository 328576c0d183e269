// The command palette: what can be done on the page, found by typing. The script on every page (register.js) fetches it when it is
// first opened. A command is listed if the page has the element that it needs.

const make = (name, attributes, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

/** Moves the focus to an element, and shows it. Nothing in closed details takes the focus. */
function focus(element) {
  for (let around = element.closest("details"); around; around = around.parentElement?.closest("details")) around.open = true;
  element.scrollIntoView();
  element.focus();
}

const click = (element) => element.click();

function openTab(tab) {
  tab.click();
  document.getElementById("details").scrollIntoView();
  focus(tab);
}

// For each command, its title, the elements that it needs, and what it does with one of them. The text of the element takes the
// place of `{}`.
const COMMANDS = [
  ["Change the model", "#ask-model", focus],
  ["Change the number of tokens", "#ask-tokens", focus],
  ["Add a GPU type", "#ask-gpu", focus],
  ["Choose a deadline, GPU count or budget", "#ask-goal", focus],
  ["Change the price", "#ask-price", focus],
  ["Change the batch: tokens per step", "#field-batch-tokens", focus],
  ["Change the failure rate", "#field-failure-rate", focus],
  ["Change other settings", "#all-settings", focus],
  ["Go to the saved plans", "#saved-title", focus],
  ["Go to the saved plans (none is saved yet: a star saves one)", ".plan:not(:has(#saved-title)) .cards-row > :first-child .save", focus],
  ["Chart: {}", ".front .segments button", click],
  ["Details: {}", ".tabs [role=tab]", openTab],
  ["Choose what the chart shows", "#scatter-y", focus],
  ["Sort the table", "#sort", focus],
  ["Add a run", "#add-run", focus],
  ["Theme: next of auto, light, dark", ".theme", click],
  ["Undo", "#undo", click],
  ["Redo", ".plan", () => history.forward()],
  ["Print a report", "#print-report", click],
  ["Go to {}", "header nav a:not([aria-current])", click],
];

const listed = () =>
  COMMANDS.flatMap(([title, selector, run]) =>
    [...document.querySelectorAll(selector)].map((element) => ({
      title: title.replace("{}", element.textContent.trim()),
      run: () => run(element),
    })),
  );

const input = make("input", {
  type: "text",
  role: "combobox",
  "aria-label": "Command",
  "aria-expanded": "true",
  "aria-controls": "palette-list",
  autocomplete: "off",
  placeholder: "Type a command",
});
const list = make("ul", { role: "listbox", id: "palette-list", "aria-label": "Commands" });
const none = make("p", { role: "status" }, "No matching command");
const dialog = make("dialog", { class: "palette", "aria-label": "Commands" }, input, list, none, make("p", {}, help()));

let commands = [];
let shown = [];
let place = 0;

function help() {
  const key = (name) => make("kbd", {}, name);
  const undo = document.querySelector(".plan") ? ["; ", key("Ctrl Z"), " undoes a change."] : ["."];
  return make(
    "small",
    {},
    ...[key("↑"), " ", key("↓"), " choose, ", key("Enter"), " runs, ", key("Esc"), " closes. "],
    ...[key("Ctrl K"), ", ", key("⌘ K"), " or ", key("?"), " opens this list", ...undo],
  );
}

/** Lists the commands whose title contains every word. */
function show() {
  const words = input.value.toLowerCase().split(/\s+/);
  shown = commands.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
  list.replaceChildren(...shown.map(({ title }, index) => make("li", { role: "option", id: `command-${index}` }, title)));
  none.hidden = shown.length > 0;
  select(0);
}

function select(index) {
  place = index;
  [...list.children].forEach((option, at) => option.setAttribute("aria-selected", at === place));
  list.children[place]?.scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", `command-${place}`);
}

function run(index) {
  const command = shown[index];
  if (!command) return;
  // It gives the focus back, so it comes first.
  dialog.close();
  command.run();
}

input.addEventListener("input", show);
input.addEventListener("keydown", (event) => {
  const steps = { ArrowDown: 1, ArrowUp: shown.length - 1 };
  if (event.key === "Enter") run(place);
  else if (event.key in steps && shown.length) select((place + steps[event.key]) % shown.length);
  else return;
  event.preventDefault();
});
list.addEventListener("click", ({ target }) => run([...list.children].indexOf(target)));

// Escape closes only the palette, not what is open below it.
dialog.addEventListener("keydown", (event) => {
  if (event.key === "Escape") event.stopPropagation();
});

// The palette opens with its styles, or without them if they can't be fetched.
const styles = make("link", { rel: "stylesheet", href: new URL("palette.css", import.meta.url) });
await new Promise((done) => {
  styles.onload = styles.onerror = done;
  document.head.append(styles);
});
document.body.append(dialog);

export function open() {
  if (dialog.open) return;
  commands = listed();
  input.value = "";
  dialog.showModal();
  show();
}
