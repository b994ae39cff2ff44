"use strict";
// The page is complete without this: it only sorts and filters the tables, and folds the matrices.
(() => {
  document.documentElement.classList.add("js");
  const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

  const valueOf = (entry, column) => {
    const cell = entry.rows[0].cells[column];
    return cell.dataset.v ?? cell.textContent.trim().replace(/,(?=\d{3})/g, "");
  };

  const compare = (a, b) => (a !== "" && b !== "" && !isNaN(a) && !isNaN(b) ? a - b : words.compare(a, b));

  const sort = (table, header) => {
    const first = header.dataset.first ?? (header.classList.contains("number") ? "descending" : "ascending");
    const other = first === "ascending" ? "descending" : "ascending";
    const direction = header.getAttribute("aria-sort") === first ? other : first;
    for (const each of header.parentElement.cells) each.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const column = header.cellIndex;
    const entries = [...table.tBodies].map((entry) => [valueOf(entry, column), entry]);
    entries.sort(([a], [b]) => sign * compare(a, b));
    table.append(...entries.map(([, entry]) => entry));
  };

  const open = (entry, opened) => {
    entry.classList.toggle("open", opened);
    entry.querySelector(".toggle").setAttribute("aria-expanded", opened);
  };

  const button = (className, contents) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = className;
    made.append(...contents);
    return made;
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    for (const header of table.tHead.rows[0].cells) {
      if ("fixed" in header.dataset) continue;
      const sorter = button("sort", [...header.childNodes]);
      sorter.addEventListener("click", () => sort(table, header));
      header.append(sorter);
    }
    for (const cell of table.querySelectorAll("th.opens")) {
      const entry = cell.closest("tbody");
      const toggle = button("toggle", [...cell.childNodes]);
      toggle.addEventListener("click", () => open(entry, !entry.classList.contains("open")));
      cell.append(toggle);
      open(entry, false);
    }
  }

  for (const controls of document.querySelectorAll(".controls")) {
    const table = document.getElementById(controls.dataset.for);
    const search = controls.querySelector("[type=search]");
    const check = controls.querySelector("[type=checkbox]");
    const all = controls.querySelector(".all");
    const status = controls.querySelector("[role=status]");
    const entries = [...table.tBodies].map((entry) => [entry.rows[0].textContent.toLowerCase(), entry]);

    const filter = () => {
      const wanted = search.value.trim().toLowerCase();
      let shown = 0;
      for (const [text, entry] of entries) {
        const kept = text.includes(wanted) && (!check?.checked || "check" in entry.dataset);
        entry.hidden = !kept;
        shown += kept;
      }
      const total = entries.length.toLocaleString("en");
      status.textContent = shown === entries.length ? `${total} shown` : `${shown.toLocaleString("en")} of ${total} shown`;
    };

    search.addEventListener("input", filter);
    check?.addEventListener("change", filter);
    all?.addEventListener("click", () => {
      const opened = all.getAttribute("aria-pressed") !== "true";
      all.setAttribute("aria-pressed", opened);
      for (const [, entry] of entries) open(entry, opened);
    });
    controls.hidden = false;
    filter();
  }
})();
