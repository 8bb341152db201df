import { createRoot } from "react-dom/client";
import { App } from "./app";
import { applyTheme, storedTheme } from "./ui/theme";
import "./ui/style.css";

applyTheme(storedTheme());
createRoot(document.getElementById("root")!).render(<App />);
