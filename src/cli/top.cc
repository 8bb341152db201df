// `carve top`: shows the devices and their slices. On a terminal it refreshes in place until q or Ctrl-C;
// into a pipe it prints once.
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include "cli/top_view.h"
#include "cli/verbs.h"
#include "wire/api/device.h"
#include "wire/api/node.h"
#include "wire/api/problem.h"
#include "wire/api/slice.h"

namespace carve::cli {
namespace {

// The document that `carve top -o json` prints.
struct TopDocument {
  std::vector<api::Device> devices;
  std::vector<api::Slice> slices;
};

struct TopOptions {
  double interval = 1.0;
  unsigned rounds = 0;  // Number of refreshes; 0 means until the user quits.
  bool once = false;
};

volatile sig_atomic_t stopped = 0;

// The terminal's mode while `top` runs: alternate screen, no cursor, single keys. The destructor restores it.
class LiveTerminal {
 public:
  LiveTerminal() {
    keys_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (keys_) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    fmt::print("\x1b[?1049h\x1b[?25l");
    struct sigaction act {};
    act.sa_handler = [](int) { stopped = 1; };
    sigaction(SIGINT, &act, nullptr);
    sigaction(SIGTERM, &act, nullptr);
  }
  ~LiveTerminal() {
    if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    fmt::print("\x1b[?25h\x1b[?1049l");
    std::fflush(stdout);
  }
  // Returns true if the user pressed q or a signal arrived.
  bool wait(double seconds) const {
    pollfd key{.fd = keys_ ? STDIN_FILENO : -1, .events = POLLIN};
    char pressed = 0;
    if (poll(&key, 1, static_cast<int>(seconds * 1000)) > 0 && read(STDIN_FILENO, &pressed, 1) == 1)
      return pressed == 'q' || pressed == 'Q';
    return stopped != 0;
  }

 private:
  termios before_{};
  bool keys_ = false;
};

client::Answer<TopView> look(const client::AgentClient& agent) {
  TopView view{.now_ns = utc_now_ns()};
  auto version = agent.version();
  if (!version) return tl::unexpected(version.error());
  auto devices = agent.devices();
  if (!devices) return tl::unexpected(devices.error());
  auto slices = agent.slices();
  if (!slices) return tl::unexpected(slices.error());
  view.agent = std::move(*version);
  view.devices = std::move(*devices);
  view.slices = std::move(*slices);
  return view;
}

// Draws over the old screen line by line to avoid flicker.
void repaint(const std::string& picture, unsigned height) {
  std::string out = "\x1b[H";
  size_t line = 0;
  for (size_t at = 0; at < picture.size() && line + 1 < height; ++line) {
    const size_t end = picture.find('\n', at);
    out += picture.substr(at, end - at) + "\x1b[K\r\n";
    at = end == std::string::npos ? picture.size() : end + 1;
  }
  fmt::print("{}\x1b[J", out);
  std::fflush(stdout);
}

void live(Context& context, const TopOptions& options) {
  const client::AgentClient agent = context.agent();
  auto first = look(agent);
  if (!first) return answered(context, first, [](const auto&) {});
  api::Problem lost;
  {
    const LiveTerminal terminal;
    for (unsigned round = 1;; ++round) {
      const auto view = look(agent);
      context.screen = screen();  // The window may have been resized.
      if (!view) {
        lost = view.error();
        break;
      }
      repaint(render(*view, context.screen), context.screen.height);
      if ((options.rounds != 0 && round >= options.rounds) || terminal.wait(options.interval)) break;
    }
  }
  if (!lost.detail.empty()) {
    complain(lost);
    context.status = context.problem_status;
  }
}

}  // namespace

void add_top(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("top", "Watch devices and slices; press q to exit");
  auto options = std::make_shared<TopOptions>();
  verb->add_option("-d,--interval", options->interval, "Seconds between two refreshes, 0.1 to 3600")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  verb->add_option("-n,--rounds", options->rounds, "Exit after this many refreshes; 0 means never");
  verb->add_flag("--once", options->once, "Print once and exit, even on a terminal");
  add_output(verb, context);
  verb->callback([&context, options] {
    if (context.screen.terminal && !options->once && !context.json()) return live(context, *options);
    answered(context, look(context.agent()), [&](const TopView& view) {
      if (!context.json()) {
        fmt::print("{}", render(view, context.screen));
        return;
      }
      print_json(TopDocument{view.devices.devices, view.slices.slices});
    });
  });
}

}  // namespace carve::cli
