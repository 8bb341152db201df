// A table that sorts, filters, selects and shows 100 rows at a time. A row is rendered again only if its
// object or the columns have changed.
import { memo, type ReactNode, useDeferredValue, useId, useMemo, useState } from "react";
import { useT } from "../i18n";
import { Button } from "./basics";

export interface Column<T> {
  key: string;
  header: string;
  cell: (row: T) => ReactNode;
  sortBy?: (row: T) => string | number;
  text?: (row: T) => string; // Searched by the filter.
  numeric?: boolean;
}

export interface Selection {
  selected: ReadonlySet<string>;
  change: (selected: ReadonlySet<string>) => void;
}

interface Props<T> {
  label: string;
  columns: Column<T>[]; // Memoized by the caller.
  rows: T[];
  rowKey: (row: T) => string;
  empty: ReactNode;
  hasFilter?: boolean;
  selection?: Selection;
  sort?: { key: string; isDescending?: boolean };
  toolbar?: ReactNode;
}

const page_rows = 100;
const row_count_with_filter = 8;

const Row = memo(function Row<T>({
  row,
  columns,
  id,
  isSelected,
  select,
}: {
  row: T;
  columns: Column<T>[];
  id: string;
  isSelected: boolean | null;
  select: (id: string) => void;
}) {
  const t = useT();
  return (
    <tr aria-selected={isSelected ?? undefined}>
      {isSelected !== null && (
        <td className="select">
          <input
            type="checkbox"
            aria-label={t("Select {name}", { name: id })}
            checked={isSelected}
            onChange={() => select(id)}
          />
        </td>
      )}
      {columns.map((column, i) =>
        i === 0 ? (
          <th key={column.key} scope="row">
            {column.cell(row)}
          </th>
        ) : (
          <td key={column.key} className={column.numeric ? "numeric" : undefined}>
            {column.cell(row)}
          </td>
        ),
      )}
    </tr>
  );
}) as <T>(props: {
  row: T;
  columns: Column<T>[];
  id: string;
  isSelected: boolean | null;
  select: (id: string) => void;
}) => ReactNode;

const collator = new Intl.Collator("en", { numeric: true });

export function sorted<T>(rows: T[], column: Column<T> | undefined, isDescending: boolean): T[] {
  const by = column?.sortBy;
  if (!by) return rows;
  const sign = isDescending ? -1 : 1;
  return rows
    .map((row) => ({ row, key: by(row) }))
    .sort(
      (a, b) =>
        sign *
        (typeof a.key === "number" && typeof b.key === "number"
          ? a.key - b.key
          : collator.compare(String(a.key), String(b.key))),
    )
    .map(({ row }) => row);
}

export function filtered<T>(rows: T[], columns: Column<T>[], words: string): T[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return rows;
  return rows.filter((row) => {
    const text = columns
      .map((column) => column.text?.(row) ?? "")
      .join("\n")
      .toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

export function DataTable<T>({
  label,
  columns,
  rows,
  rowKey,
  empty,
  hasFilter,
  selection,
  sort,
  toolbar,
}: Props<T>) {
  const t = useT();
  const filterId = useId();
  const [order, setOrder] = useState({ key: sort?.key ?? "", isDescending: sort?.isDescending ?? false });
  const [filter, setFilter] = useState("");
  const [shown, setShown] = useState(page_rows);
  const words = useDeferredValue(filter);
  const matching = useMemo(() => filtered(rows, columns, words), [rows, columns, words]);
  const ordered = useMemo(
    () =>
      sorted(
        matching,
        columns.find((c) => c.key === order.key),
        order.isDescending,
      ),
    [matching, columns, order],
  );
  const visible = ordered.slice(0, shown);
  const select = useMemo(() => {
    if (!selection) return () => {};
    return (id: string) => {
      const next = new Set(selection.selected);
      if (!next.delete(id)) next.add(id);
      selection.change(next);
    };
  }, [selection]);
  if (rows.length === 0 && !filter)
    return (
      <>
        {toolbar && <div className="table-bar">{toolbar}</div>}
        {empty}
      </>
    );
  const showsFilter = hasFilter ?? rows.length > row_count_with_filter;
  const allKeys = ordered.map(rowKey);
  const isAll =
    selection !== undefined && allKeys.length > 0 && allKeys.every((key) => selection.selected.has(key));
  return (
    <div className="table-part">
      {(showsFilter || toolbar) && (
        <div className="table-bar">
          {showsFilter && (
            <>
              <label className="hidden-label" htmlFor={filterId}>
                {t("Filter {table}", { table: label })}
              </label>
              <input
                id={filterId}
                type="search"
                placeholder={t("Filter")}
                value={filter}
                onChange={(event) => setFilter(event.target.value)}
              />
              <span className="muted count" role="status">
                {words
                  ? t("{shown} of {all}", { shown: matching.length, all: rows.length })
                  : t("{n} rows", { n: rows.length })}
              </span>
            </>
          )}
          {toolbar}
        </div>
      )}
      <div className="table-scroll" role="region" aria-label={label} tabIndex={0}>
        <table>
          <thead>
            <tr>
              {selection && (
                <th className="select" scope="col">
                  <input
                    type="checkbox"
                    aria-label={t("Select all")}
                    checked={isAll}
                    ref={(box) => {
                      if (box)
                        box.indeterminate = !isAll && allKeys.some((key) => selection.selected.has(key));
                    }}
                    onChange={() => selection.change(isAll ? new Set() : new Set(allKeys))}
                  />
                </th>
              )}
              {columns.map((column) => (
                <th
                  key={column.key}
                  scope="col"
                  className={column.numeric ? "numeric" : undefined}
                  aria-sort={
                    column.sortBy
                      ? order.key === column.key
                        ? order.isDescending
                          ? "descending"
                          : "ascending"
                        : "none"
                      : undefined
                  }
                >
                  {column.sortBy ? (
                    <button
                      type="button"
                      className="sort"
                      onClick={() =>
                        setOrder({
                          key: column.key,
                          isDescending: order.key === column.key && !order.isDescending,
                        })
                      }
                    >
                      {column.header}
                      <span aria-hidden="true">
                        {order.key === column.key ? (order.isDescending ? "↓" : "↑") : ""}
                      </span>
                    </button>
                  ) : (
                    column.header
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {visible.map((row) => {
              const id = rowKey(row);
              return (
                <Row
                  key={id}
                  row={row}
                  columns={columns}
                  id={id}
                  isSelected={selection ? selection.selected.has(id) : null}
                  select={select}
                />
              );
            })}
          </tbody>
        </table>
      </div>
      {matching.length === 0 && <p className="muted no-match">{t("No row matches the filter.")}</p>}
      {ordered.length > visible.length && (
        <div className="table-more">
          <Button onClick={() => setShown(shown + page_rows)}>
            {t("Show {n} more of {all}", {
              n: Math.min(page_rows, ordered.length - shown),
              all: ordered.length,
            })}
          </Button>
        </div>
      )}
    </div>
  );
}
