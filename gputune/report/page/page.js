"use strict";
// Adds to a page that is whole without it: buttons, folding, sorting, and what a picture's marks say by keyboard.
(() => {
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const byId = (id) => document.getElementById(id);
  const said = byId("said");
  for (const one of all(".scripted")) one.hidden = false;
  for (const one of all(".unscripted")) one.hidden = true;

  const folds = all("details");
  const fold = byId("fold");
  const setFolds = (open) => {
    for (const one of folds) one.open = open;
    fold.textContent = open ? "Fold all" : "Unfold all";
    fold.setAttribute("aria-expanded", String(open));
  };
  setFolds(false);
  fold.addEventListener("click", () => setFolds(fold.getAttribute("aria-expanded") === "false"));
  let before = [];
  addEventListener("beforeprint", () => {
    before = folds.filter((one) => !one.open);
    for (const one of before) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of before) one.open = false;
  });

  const theme = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { theme.textContent = isDark() ? "Light theme" : "Dark theme"; };
  nameTheme();
  dark.addEventListener("change", nameTheme);
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });

  const copied = async (code) => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(code);
      return document.execCommand("copy");
    }
  };
  for (const button of all(".copy")) {
    button.addEventListener("click", async () => {
      const done = await copied(button.parentElement.querySelector("code"));
      button.textContent = done ? "Copied" : "Press Ctrl+C";
      said.textContent = done ? "Copied" : "Selected: press Ctrl+C";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }
  for (const button of all(".save")) {
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([byId("data").textContent], { type: "application/json" }));
      link.download = button.dataset.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }

  const filter = byId("filter");
  filter?.addEventListener("input", () => {
    const word = filter.value.trim().toLowerCase();
    const rows = all(".settings tbody tr");
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(word);
    said.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} settings shown`;
  });
  const keys = {
    "c-setting": (row) => row.querySelector("code").textContent,
    "c-gain": (row) => -Number(row.dataset.gain),
  };
  for (const table of all(".settings")) {
    for (const [kind, key] of Object.entries(keys)) {
      const head = table.querySelector(`th.${kind}`);
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const rows = all("tbody tr", table).sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
        table.tBodies[0].append(...rows);
        for (const other of all("th", table)) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", kind === "c-gain" ? "descending" : "ascending");
      });
    }
  }

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const leave = (picture) => {
    tip.hidden = true;
    picture.classList.remove("keyed");
    for (const one of all(".here", picture)) one.classList.remove("here");
  };
  const show = (picture, mark) => {
    leave(picture);
    picture.classList.add("keyed");
    mark.classList.add("here");
    tip.textContent = mark.querySelector("title").textContent;
    tip.hidden = false;
    const at = (mark.querySelector(".dot") ?? mark).getBoundingClientRect();
    const left = Math.min(at.left + scrollX, scrollX + document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${at.bottom + scrollY + 6}px`;
    said.textContent = tip.textContent;
  };
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  for (const picture of all(".picture")) {
    const marks = all(".mark", picture);
    if (!marks.length) continue;
    let here = -1;
    picture.setAttribute("tabindex", "0");
    picture.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave(picture);
      if (!(event.key in steps)) return;
      event.preventDefault();
      here = here < 0 ? 0 : (here + steps[event.key] + marks.length) % marks.length;
      show(picture, marks[here]);
    });
    picture.addEventListener("blur", () => { here = -1; leave(picture); });
  }
})();
