// Definitions of terms: on hover for a mouse, on focus for a keyboard, on touch (which focuses the button).
export function watchTerms() {
  const box = document.createElement("div");
  box.className = "definition";
  box.id = "definition";
  box.setAttribute("role", "tooltip");
  box.hidden = true;
  document.body.append(box);
  let current = null;

  function show(term) {
    current = term;
    box.textContent = term.dataset.definition;
    box.hidden = false;
    term.setAttribute("aria-describedby", box.id);
    const place = term.getBoundingClientRect(), size = box.getBoundingClientRect();
    const left = Math.min(place.left, document.documentElement.clientWidth - size.width - 16);
    const below = place.bottom + 8 + size.height < window.innerHeight;
    box.style.left = `${Math.max(16, left)}px`;
    box.style.top = `${below ? place.bottom + 8 : Math.max(8, place.top - size.height - 8)}px`;
  }
  function hide() {
    current?.removeAttribute("aria-describedby");
    current = null;
    box.hidden = true;
  }
  for (const term of document.querySelectorAll(".term")) {
    term.addEventListener("mouseenter", () => show(term));
    term.addEventListener("mouseleave", hide);
    term.addEventListener("focus", () => show(term));
    term.addEventListener("blur", hide);
    term.addEventListener("click", () => show(term));  // Safari does not focus a button that is touched
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("scroll", hide, { passive: true, capture: true });
}
