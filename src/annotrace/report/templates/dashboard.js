"use strict";
(() => {
  const frame = document.getElementById("report");
  const status = document.getElementById("status");
  const problem = document.getElementById("problem");
  const verdicts = {
    identified: "the labels identify the true classes",
    weak: "use the result with care",
    "not identified": "the labels do not identify the true classes",
  };
  let version = null;
  let changed = null;

  const count = (number, noun) =>
    `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

  function describe(state) {
    const parts = [
      count(state.labels, "label"),
      count(state.items, "item"),
      count(state.annotators, "annotator"),
    ];
    if (state.verdict !== null) parts.push(verdicts[state.verdict] ?? state.verdict);
    if (changed !== null) parts.push(`updated at ${changed.toLocaleTimeString("en-GB")}`);
    return parts.join(" · ");
  }

  function show(state) {
    if (version !== null && state.version !== version) {
      const place = frame.contentWindow.scrollY;
      frame.addEventListener("load", () => frame.contentWindow.scrollTo(0, place), { once: true });
      frame.contentWindow.location.reload();
      changed = new Date();
    }
    version = state.version;
    status.textContent = describe(state);
    problem.textContent = state.problem;
  }

  async function poll() {
    try {
      const answer = await fetch("state", { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      show(await answer.json());
    } catch {
      problem.textContent = "The server does not answer. This is the last report it had.";
    }
    setTimeout(poll, 2000);
  }
  poll();
})();
