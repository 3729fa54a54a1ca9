// Lists that the server searches, sorts and pages. Their state is in the address.

import { get } from "./api.js";
import { debounce, h, replace } from "./dom.js";
import { count } from "./format.js";
import { changeQuery, currentQuery } from "./router.js";
import { dataTable } from "./table.js";

const SIZE = 50;
const COPIED_PAGE = 500;
const COPIED_MAX = 20000;

/** A search field whose text is in the address; `/` focuses it. */
function searchField(placeholder, changed) {
  const input = h("input", {
    type: "search",
    class: "search",
    placeholder,
    "aria-label": placeholder,
    value: currentQuery().search ?? "",
    autocomplete: "off",
    spellcheck: "false",
  });
  const apply = debounce(200, () => changed(input.value.trim()));
  input.addEventListener("input", apply);
  return input;
}

/** serverList(context, {url, params(query), refresh_ms, search, ...the spec of a table}). */
export function serverList(context, spec) {
  const pager = h("nav", { class: "pager", "aria-label": "Pages" });
  const search = searchField(spec.search, (text) =>
    changeQuery({ search: text, page: null }, { replace: true }),
  );
  const wanted = (query) => ({
    search: query.search,
    sort: query.sort ?? spec.sort,
    order: query.order ?? spec.order,
    ...spec.params?.(query),
  });

  async function allItems() {
    const items = [];
    for (let page = 1; items.length < COPIED_MAX; page += 1) {
      const answer = await get(
        spec.url,
        { ...wanted(currentQuery()), page, size: COPIED_PAGE },
        context.signal,
      );
      items.push(...answer.items);
      if (!answer.items.length || items.length >= answer.total) {
        break;
      }
    }
    return items;
  }

  const table = dataTable({
    ...spec,
    onSort: (sort, order) => changeQuery({ sort, order, page: null }),
    allItems,
  });

  let newest = 0;

  async function load() {
    newest += 1;
    const number = newest;
    const query = currentQuery();
    const asked = { ...wanted(query), page: query.page ?? 1, size: SIZE };
    const answer = await get(spec.url, asked, context.signal);
    if (number !== newest) {
      return; // the answer to an older search, which came late
    }
    if (answer.items.length === 0 && answer.total > 0) {
      changeQuery({ page: null }, { replace: true });
      return;
    }
    table.update(answer.items, { total: answer.total, sort: asked.sort, order: asked.order });
    drawPager(pager, answer);
  }

  context.root.append(h("div", { class: "toolbar" }, search, spec.toolbar), table.element, pager);
  context.poll(spec.refresh_ms ?? 5000, load);
  return {
    reload: () => context.refresh(),
    update: () => {
      const text = currentQuery().search ?? "";
      if (document.activeElement !== search && search.value !== text) {
        search.value = text;
      }
      context.refresh();
    },
  };
}

function drawPager(pager, { page, size, total }) {
  const pages = Math.max(1, Math.ceil(total / size));
  const step = (label, target, hint) =>
    h(
      "button",
      {
        type: "button",
        class: "small",
        disabled: target < 1 || target > pages || target === page,
        "aria-label": hint,
        on: { click: () => changeQuery({ page: target === 1 ? null : target }) },
      },
      label,
    );
  replace(
    pager,
    pages > 1
      ? [
          step("«", 1, "First page"),
          step("‹ Previous", page - 1, "Previous page"),
          h("span", null, `Page ${count(page)} of ${count(pages)}`),
          step("Next ›", page + 1, "Next page"),
          step("»", pages, "Last page"),
        ]
      : null,
  );
}
