// English and Chinese texts. The English text is the key; zh.ts has the Chinese one, and the type of its keys
// makes the compiler reject a text that has no translation.
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from "react";
import type { Key } from "./zh";

export type { Key };
export type Language = "en" | "zh-CN";
type Args = Record<string, string | number>;
export type Translate = (key: Key, args?: Args) => string;

const storage_key = "carve.language";

export function fill(text: string, args: Args = {}): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in args ? String(args[name]) : whole));
}

const LanguageContext = createContext<{
  language: Language;
  t: Translate;
  setLanguage: (language: Language) => void;
} | null>(null);

function initialLanguage(): Language {
  const stored = localStorage.getItem(storage_key);
  if (stored === "en" || stored === "zh-CN") return stored;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh-CN" : "en";
}

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, setState] = useState<Language>(initialLanguage);
  const [chinese, setChinese] = useState<Record<string, string> | null>(null);
  useEffect(() => {
    document.documentElement.lang = language;
    if (language === "zh-CN" && !chinese) void import("./zh").then((module) => setChinese(module.zh));
  }, [language, chinese]);
  const setLanguage = useCallback((next: Language) => {
    localStorage.setItem(storage_key, next);
    setState(next);
  }, []);
  const texts = language === "zh-CN" ? chinese : null;
  const value = useMemo(
    () => ({ language, setLanguage, t: (key: Key, args?: Args) => fill(texts?.[key] ?? key, args) }),
    [language, setLanguage, texts],
  );
  if (language === "zh-CN" && !chinese) return null;
  return <LanguageContext.Provider value={value}>{children}</LanguageContext.Provider>;
}

export function useLanguage() {
  const value = useContext(LanguageContext);
  if (!value) throw new Error("no LanguageProvider");
  return value;
}
export const useT = (): Translate => useLanguage().t;
