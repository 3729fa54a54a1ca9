// Runs before the first paint, so that a chosen theme does not flash. "auto" follows the system.
(function () {
  "use strict";
  let theme = null;
  try {
    theme = localStorage.getItem("barnabas.theme");
  } catch {
    theme = null; // storage may be forbidden; then the system decides
  }
  if (theme === "light" || theme === "dark") {
    document.documentElement.dataset.theme = theme;
  }
})();
