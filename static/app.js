// Small comforts on pages that work without them. No behaviour lives only here.
"use strict";
(() => {
  const root = document.documentElement;
  const each = (selector, scope, act) => scope.querySelectorAll(selector).forEach(act);

  // A second press of a button is the same action. The server's one-time key
  // decides; this only spares the reader an answer about it.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    // Forms are not checked by the browser, but a file it knows to be too
    // large need not travel.
    const large = form.querySelector("[data-max-bytes]:invalid");
    if (large) {
      event.preventDefault();
      large.reportValidity();
      return;
    }
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "1";
    event.submitter?.setAttribute("aria-disabled", "true");
    setTimeout(() => release(form), 15000);
  });
  const release = (form) => {
    delete form.dataset.sent;
    each("[aria-disabled]", form, (b) => b.removeAttribute("aria-disabled"));
    // A button may sit outside its form and point to it.
    if (form.id) each(`[form="${CSS.escape(form.id)}"][aria-disabled]`, document, (b) => b.removeAttribute("aria-disabled"));
  };
  // Coming back with the browser's back button shows a usable form again.
  addEventListener("pageshow", () => each("form[data-sent]", document, release));

  // Menus are <details>: close on Escape and on a press elsewhere.
  document.addEventListener("click", (event) => {
    each("details.menu[open]", document, (m) => m.contains(event.target) || (m.open = false));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    each("details.menu[open]", document, (m) => {
      m.open = false;
      m.querySelector("summary").focus();
    });
  });

  // Copy buttons are hidden until we know that copying works.
  if (navigator.clipboard) root.dataset.copy = "on";
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy-from]");
    if (!button) return;
    const text = document.getElementById(button.dataset.copyFrom)?.textContent ?? "";
    try {
      await navigator.clipboard.writeText(text);
      say(button.dataset.copied);
      const label = button.querySelector("[data-label]");
      const before = label.textContent;
      label.textContent = button.dataset.copied;
      setTimeout(() => (label.textContent = before), 2000);
    } catch {
      say(button.dataset.failed);
    }
  });

  // Data is inserted where the cursor is; without a script the server puts it at the end.
  document.addEventListener("click", (event) => {
    const box = event.target.closest?.("[data-insert] button")?.parentElement;
    const field = box && document.getElementById(box.dataset.insert);
    if (!field) return;
    event.preventDefault();
    const choice = box.querySelector("select");
    if (!choice.value) return choice.focus();
    const before = field.value.slice(0, field.selectionStart);
    const gap = before && !/\s$/.test(before) ? " " : "";
    field.setRangeText(gap + choice.value, field.selectionStart, field.selectionEnd, "end");
    choice.value = "";
    field.focus();
  });

  // A file that is too large is told before it is sent.
  document.addEventListener("change", (event) => {
    const input = event.target;
    if (input.type !== "file" || !input.dataset.maxBytes) return;
    const large = [...input.files].find((f) => f.size > Number(input.dataset.maxBytes));
    input.setCustomValidity(large ? input.dataset.tooLarge : "");
    if (large) input.reportValidity();
  });

  // One polite voice, at most every ten seconds, the newest sentence wins.
  let waiting = "", quietUntil = 0, timer = 0;
  const say = (sentence) => {
    waiting = sentence;
    if (timer || !sentence) return;
    timer = setTimeout(() => {
      timer = 0;
      quietUntil = Date.now() + 10000;
      const voice = document.getElementById("voice");
      if (voice) voice.textContent = waiting;
    }, Math.max(0, quietUntil - Date.now()));
  };

  // Live regions: how the stream is doing is an attribute of the page, so that
  // a swapped part cannot lose it. Words for each state are in the markup.
  const live = (state) => (root.dataset.live = state);
  let said = document.querySelector("[data-say]")?.dataset.say;
  document.addEventListener("htmx:sse:after:connection", () => live("on"));
  document.addEventListener("htmx:sse:before:connection", (event) => {
    if (event.detail.connection.attempt > 0) live("wait");
  });
  document.addEventListener("htmx:sse:error", () => live("wait"));
  document.addEventListener("htmx:sse:close", (event) => {
    if (event.detail.reason === "message") live("ended");
    else if (event.detail.reason !== "removed") live("off");
  });
  document.addEventListener("htmx:sse:after:message", () => {
    const note = document.querySelector("[data-say]");
    if (!note) return;
    if (note.dataset.title) document.title = note.dataset.title;
    if (note.dataset.say !== said) say((said = note.dataset.say));
  });
})();
