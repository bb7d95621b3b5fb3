for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  for (const [place, button] of [...table.querySelectorAll("th button")].entries()) {
    button.addEventListener("click", () => {
      const head = button.parentElement;
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => row.cells[place].dataset.value;
      const order = (one, two) => {
        if (value(one) !== undefined && value(two) !== undefined) return value(one) - value(two);
        return one.cells[place].textContent.localeCompare(two.cells[place].textContent);
      };
      const rows = [...body.rows].sort((one, two) => (up ? order(one, two) : order(two, one)));
      body.append(...rows);
    });
  }
}
