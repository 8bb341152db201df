// Builds the console. `vite` and `vite preview` forward the API to a controller, whose TCP address is in
// CARVE_CONTROLLER_TCP. The controller accepts its own origin only, so the proxy names it.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const target = `http://${process.env.CARVE_CONTROLLER_TCP ?? "127.0.0.1:8470"}`;
const forwarded = { target, changeOrigin: true, headers: { origin: target } };
const proxy = { "/v1": forwarded, "/openapi.json": forwarded, "/metrics": forwarded };

export default defineConfig({
  plugins: process.env.VITEST ? [] : [react()],
  server: { proxy },
  preview: { proxy },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // The Content-Security-Policy forbids data: addresses.
    reportCompressedSize: false,
  },
  test: { include: ["src/**/*.test.ts"] },
} as Parameters<typeof defineConfig>[0]);
