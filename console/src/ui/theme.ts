// Light or dark: the system's choice, unless the user has chosen.
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const storage_key = "carve.theme";
const listeners = new Set<() => void>();

export function storedTheme(): Theme {
  const stored = localStorage.getItem(storage_key);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function applyTheme(theme: Theme) {
  localStorage.setItem(storage_key, theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const listener of listeners) listener();
}

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => {
  for (const listener of listeners) listener();
});

const isDarkNow = () => {
  const theme = storedTheme();
  return theme === "system" ? dark.matches : theme === "dark";
};

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
// For canvases, which CSS does not colour.
export const useIsDark = () => useSyncExternalStore(subscribe, isDarkNow);
export const useTheme = () => useSyncExternalStore(subscribe, storedTheme);

export const cssColor = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();
