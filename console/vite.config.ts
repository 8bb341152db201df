// Builds the console. `vite` and `vite preview` put the development gateway in front of it, which the
// environment variables CARVE_CONTROLLER and CARVE_CONTROLLER_TCP configure (dev/gateway.ts).
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { gatewayFromEnvironment } from "./dev/gateway.ts";

function gateway(): Plugin {
  return {
    name: "carve-gateway",
    async configureServer(server) {
      server.middlewares.use(await gatewayFromEnvironment());
    },
    async configurePreviewServer(server) {
      server.middlewares.use(await gatewayFromEnvironment());
    },
  };
}

export default defineConfig({
  plugins: process.env.VITEST ? [] : [react(), gateway()],
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // The Content-Security-Policy forbids data: addresses.
    reportCompressedSize: false,
  },
  test: { include: ["src/**/*.test.ts"] },
} as Parameters<typeof defineConfig>[0]);
