// `carve console`: signs this user's browser in to the web console.
#include "cli/console.h"

#include <spawn.h>

#include <cstdlib>

#include "cli/verbs.h"

extern char** environ;

namespace carve::cli {
namespace {

// Returns whether this terminal belongs to a desktop that can show a browser.
bool has_desktop() {
  for (const char* name : {"WAYLAND_DISPLAY", "DISPLAY"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return true;
  return false;
}

// Returns whether the desktop's program for web addresses could be started.
bool open_browser(const std::string& address) {
  std::string program = "xdg-open", argument = address;
  char* words[] = {program.data(), argument.data(), nullptr};
  pid_t pid = 0;
  return posix_spawnp(&pid, words[0], nullptr, nullptr, words, environ) == 0;
}

void show_console(Context& context, bool prints_only) {
  answered(context, sign_in_address(context.controller()), [&](const std::string& address) {
    fmt::print("{}\n", address);
    if (prints_only || !context.screen.terminal || !has_desktop()) return;
    if (!open_browser(address)) print_warning("xdg-open is not installed; open the address in a browser");
  });
}

}  // namespace

client::Answer<std::string> sign_in_address(const client::Client& controller) {
  const auto version = controller.get<api::ControllerVersion>("/v1/version");
  if (!version) return tl::unexpected(version.error());
  const auto code = controller.post<api::SignInCode>("/v1/codes", api::Nothing{});
  if (!code) return tl::unexpected(code.error());
  return version->endpoint + code->path;
}

void add_console(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("console", "Open the web console, signed in as this user");
  auto prints_only = std::make_shared<bool>(false);
  verb->add_flag("--print", *prints_only, "Print the address, but start no browser");
  verb->footer("  carve console --print\nThe address is valid for five minutes and for one session.");
  verb->callback([&context, prints_only] { show_console(context, *prints_only); });
}

}  // namespace carve::cli
