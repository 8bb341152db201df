// Writes openapi.json from a running controller: CARVE_CONTROLLER=/run/carve/controller.sock npm run openapi
import { writeFileSync } from "node:fs";
import http from "node:http";

const socketPath = process.env.CARVE_CONTROLLER;
if (!socketPath) {
  console.error("set CARVE_CONTROLLER to the controller's socket");
  process.exit(2);
}
http
  .get({ socketPath, path: "/openapi.json", headers: { Host: "carve" } }, (response) => {
    let text = "";
    response.on("data", (chunk) => {
      text += chunk;
    });
    response.on("end", () => {
      JSON.parse(text);
      writeFileSync(new URL("../openapi.json", import.meta.url), text);
    });
  })
  .on("error", (error) => {
    console.error(`${socketPath}: ${error.message}`);
    process.exit(1);
  });
