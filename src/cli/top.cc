// `carve top`: shows the devices and their slices. On a terminal it is interactive; into a pipe it prints once.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cmath>

#include "cli/curses_screen.h"
#include "cli/top_frame.h"
#include "cli/top_session.h"
#include "cli/top_view.h"
#include "cli/verbs.h"
#include "os/mutex.h"
#include "os/user.h"
#include "os/wakeup.h"
#include "os/worker.h"
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

// Reads views from the agent and carries out actions, in its own thread, so that keys are answered while the
// agent is not.
class TopSource {
 public:
  struct News {
    std::optional<TopView> view;
    std::string lost;  // Why the agent did not respond to the last request; empty if it did.
    TopNotice notice;
    unsigned rounds = 0;  // The number of views so far.
  };

  TopSource(client::AgentClient agent, double interval)
      : shared_(std::make_shared<Shared>()),
        agent_(agent),
        worker_({.turn =
                     [shared = shared_, agent, interval] {
                       read(*shared, agent);
                       return static_cast<int64_t>(interval * 1e9);
                     },
                 .end_patience_ns = 200'000'000}) {}

  int fd() const { return shared_->news.fd(); }  // Readable when there are news.
  News take() {
    shared_->news.take();
    const os::MutexLock lock(shared_->mutex);
    News out = std::move(shared_->latest);
    shared_->latest = {.lost = out.lost, .rounds = out.rounds};
    return out;
  }
  void read_processes(bool wanted) {
    shared_->processes = wanted;
    worker_.wake();
  }
  void act(const TopAction& action) {
    worker_.run([shared = shared_, agent = agent_, action] {
      const bool stops = action.kind == TopAction::Kind::stop;
      const auto answer = stops ? agent.end(action.slice) : agent.change(action.slice, action.change);
      const TopNotice notice =
          answer ? TopNotice{stops ? fmt::format("slice {} is stopping", action.slice)
                                   : fmt::format("slice {}: {}", action.slice, change_text(action.change))}
                 : TopNotice{answer.error().detail, true};
      {
        const os::MutexLock lock(shared->mutex);
        shared->latest.notice = notice;
      }
      shared->news.set();
    });
    worker_.wake();
  }

 private:
  struct Shared {
    os::Mutex mutex;
    News latest GUARDED_BY(mutex);
    os::Wakeup news;
    std::atomic<bool> processes = false;
    std::map<uint32_t, std::string> user_names;  // Used by the worker only. A look-up may read a file.
  };

  static void read(Shared& shared, const client::AgentClient& agent) {
    auto view = look(agent);
    if (view) {
      for (api::Slice& slice : view->slices.slices) {
        std::string& name = shared.user_names[slice.owner_uid];
        if (name.empty()) name = os::user_name(slice.owner_uid);
        if (shared.processes)
          if (auto whole = agent.slice(slice.name)) slice.processes = std::move(whole->processes);
      }
      view->user_names = shared.user_names;
    }
    {
      const os::MutexLock lock(shared.mutex);
      shared.latest.lost = view ? "" : view.error().detail;
      if (view) shared.latest.view = std::move(*view);
      ++shared.latest.rounds;
    }
    shared.news.set();
  }

  std::shared_ptr<Shared> shared_;
  client::AgentClient agent_;
  os::Worker worker_;
};

// The interactive form. It ends with q, a signal, or after the given number of refreshes.
void interact(const CursesScreen& terminal, const client::AgentClient& agent, const TopOptions& options,
              TopView view) {
  TopSource source(agent, options.interval);
  TopState state;
  TopHistory history;
  std::string lost;
  const bool has_keys = isatty(STDIN_FILENO) == 1;
  for (;;) {
    keep_selection(state, top_rows(view, state));
    const TopFrame frame = draw(view, state, history, terminal.size(), terminal.is_fine(), lost);
    state.first = frame.first;
    terminal.show(frame.lines);
    pollfd waits[] = {{source.fd(), POLLIN, 0}, {has_keys ? STDIN_FILENO : -1, POLLIN, 0}};
    poll(waits, std::size(waits), -1);
    if (stopped != 0 || (waits[1].revents & (POLLHUP | POLLERR)) != 0) return;
    while (const auto key = terminal.key()) {
      const TopAction action = press(state, *key, view, frame.page);
      if (action.kind == TopAction::Kind::quit) return;
      if (action.kind == TopAction::Kind::refresh) source.read_processes(state.tree);
      if (action.kind == TopAction::Kind::stop || action.kind == TopAction::Kind::change) source.act(action);
    }
    TopSource::News news = source.take();
    lost = news.lost;
    if (!news.notice.text.empty()) state.notice = news.notice;
    if (news.view) {
      view = std::move(*news.view);
      history.add(view);
    }
    if (options.rounds != 0 && news.rounds >= options.rounds) return;
  }
}

// Returns false if the terminal cannot be used in this way.
bool live(Context& context, const TopOptions& options) {
  const client::AgentClient agent = context.agent();
  auto first = look(agent);
  if (!first) {
    answered(context, first, [](const auto&) {});
    return true;
  }
  const CursesScreen terminal(context.screen.colour);
  if (!terminal.is_open()) return false;
  struct sigaction act {};
  act.sa_handler = [](int) { stopped = 1; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &act, nullptr);
  interact(terminal, agent, options, std::move(*first));
  return true;
}

}  // namespace

void add_top(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("top", "Watch devices and slices, sort and filter them, stop or change a slice");
  auto options = std::make_shared<TopOptions>();
  verb->add_option("-d,--interval", options->interval, "Seconds between two refreshes, 0.1 to 3600")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  verb->add_option("-n,--rounds", options->rounds, "Exit after this many refreshes; 0 means never");
  verb->add_flag("--once", options->once, "Print once and exit, even on a terminal");
  add_output(verb, context);
  verb->footer(
      "On a terminal: arrows select a slice, o sorts, / filters, t shows processes, s stops and\n"
      "e changes the selected slice, ? lists all keys, q quits.\n"
      "  carve top\n"
      "  carve top --once");
  verb->callback([&context, options] {
    if (context.screen.terminal && !options->once && !context.json() && live(context, *options)) return;
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
