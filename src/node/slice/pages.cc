#include "node/slice/pages.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "core/invariant.h"
#include "node/slice/slices.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/user.h"
#include "wire/api/json.h"

namespace carve::node {
namespace {

// Each attempt takes at most a second of the agent's start.
constexpr unsigned max_recovery_attempts = 4;
constexpr const char* mark_name = "ledger.mark";

// The keys of a control page in the fd store: one for the agent, one for the descriptor that is passed to
// processes. Slice names contain no '/'.
std::string control_key(const std::string& slice) { return "c/" + slice; }
std::string reader_key(const std::string& slice) { return "r/" + slice; }

template <size_t N>
void put(char (&field)[N], const std::string& text) {
  const size_t length = std::min(text.size(), N - 1);
  memcpy(field, text.data(), length);
  memset(field + length, 0, N - length);
}

}  // namespace

void fill_control(shm::Control& control, const Slice& granted, const std::vector<Bytes>& contexts) {
  invariant(granted.parts.size() <= shm::max_devices, "a slice has at most max_devices parts");
  invariant(contexts.size() == granted.parts.size(), "one context size for each part");
  put(control.slice, granted.name);
  control.device_count = static_cast<uint32_t>(granted.parts.size());
  for (size_t i = 0; i < granted.parts.size(); ++i) {
    const SlicePart& part = granted.parts[i];
    shm::ControlDevice& out = control.devices[i];
    memcpy(out.uuid, part.device.bytes.data(), sizeof out.uuid);
    std::atomic_ref(out.quota).store(part.memory.count);
    out.spill = part.spill.count;
    out.context_bytes = contexts[i].count;
    out.share = part.share.basis_points;
    out.policy = static_cast<uint32_t>(granted.policy);
    out.whole = granted.exclusive ? 1 : 0;
    out.memory = granted.isolation != Isolation::none ? shm::Memory::limited : shm::Memory::not_limited;
  }
  control.epoch.fetch_add(1, std::memory_order_release);
}

Outcome<void> Pages::make(LiveSlice& slice) {
  auto control = runtime_.make_control(slice.name());
  if (!control) return tl::unexpected(control.error());
  auto report = make_report();
  if (!report) return tl::unexpected(report.error());
  slice.control = std::move(*control);
  keep_files(slice);
  slice.report = std::move(*report);
  hold_report(slice);
  return {};
}

Outcome<void> Pages::adopt(LiveSlice& slice) {
  auto control = runtime_.adopt_control(slice.name());
  if (control) {
    keep_files(slice);
  } else {  // The directory was removed while an agent was running.
    slice.control_file = fd_store_.get(control_key(slice.name()));
    slice.control_reader = fd_store_.get(reader_key(slice.name()));
    control = map_control(slice.control_file, control_key(slice.name()));
    holds_controls_ |= control.has_value();
  }
  if (!control) return tl::unexpected(control.error());
  slice.control = std::move(*control);
  if (auto report = adopt_report(fd_store_.get(slice.name()))) slice.report = std::move(*report);
  return {};
}

// Root can open the page through a process that has it mapped.
Recovery Pages::recover_report(LiveSlice& slice, Inspector& inspector) {
  unsigned left = max_recovery_attempts;
  for (const auto& [process, attached] : slice.attached) {
    if (left-- == 0) break;
    os::Fd fd = inspector.open_report_page(process);
    if (!fd || !os::alive(attached.pidfd)) continue;
    if (auto report = adopt_report(std::move(fd))) {
      slice.report = std::move(*report);
      hold_report(slice);
      return Recovery::from_process;
    }
  }
  if (!slice.attached.empty()) return Recovery::lost;
  if (auto report = make_report()) {
    slice.report = std::move(*report);
    hold_report(slice);
  }
  return Recovery::fresh;
}

void Pages::remove(const std::string& slice) {
  fd_store_.drop(slice);
  if (holds_controls_)
    for (const std::string& key : {control_key(slice), reader_key(slice)}) fd_store_.drop(key);
  runtime_.remove(slice);
}

void Pages::write_state(const LiveSlice& slice) {
  const StateFile state{.record = slice.record,
                        .boot_id = stamp_now().boot_id,
                        .command = slice.command,
                        .cgroup = slice.cgroup.has_value(),
                        .entered = slice.entered,
                        .creator = slice.creator.id,
                        .root = slice.root.id,
                        .supervisor = slice.supervisor.id,
                        .containers = slice.identity.containers,
                        .slot = slice.slot,
                        .released = slice.released,
                        .claim_pods = slice.claim_pods,
                        .is_kept = slice.is_kept,
                        .deadline = slice.deadline};
  if (const auto written = runtime_.write_state_file(slice.name(), write_state_file(state)); !written)
    os::log::error(os::cause_of_user(slice.granted().owner), "{}: {}", slice.name(), written.error().message);
}

std::optional<StateFile> Pages::read_state(const std::string& slice) const {
  auto state = read_state_file(runtime_.read_state_file(slice));
  if (state && state->boot_id != stamp_now().boot_id) state.reset();
  return state;
}

std::optional<LedgerMark> Pages::read_mark() const {
  auto mark = api::read<LedgerMark>(runtime_.read(mark_name), api::Reading::lenient);
  if (!mark || mark->boot_id != stamp_now().boot_id) return std::nullopt;
  return *std::move(mark);
}

void Pages::write_mark(const LedgerMark& mark) {
  if (const auto written = runtime_.write(mark_name, api::write(mark)); !written)
    os::log::error("{}", written.error().message);
}

std::vector<os::Fd> Pages::descriptors_for(const LiveSlice& slice) const {
  std::vector<os::Fd> out;
  out.emplace_back(fcntl(slice.control_reader.get(), F_DUPFD_CLOEXEC, 0));
  out.emplace_back(fcntl(slice.report.fd.get(), F_DUPFD_CLOEXEC, 0));
  out.emplace_back(fcntl(heartbeat_reader_.get(), F_DUPFD_CLOEXEC, 0));
  if (std::ranges::any_of(out, [](const os::Fd& fd) { return !fd; })) out.clear();
  return out;
}

void Pages::hold_report(const LiveSlice& slice) {
  if (slice.report.fd && !fd_store_.hold(slice.name(), slice.report.fd))
    os::log::warning(os::cause_of_user(slice.granted().owner),
                     "{}: cannot pass the report page to the fd store", slice.name());
}

// Opens the files while they have a path, which may be removed later.
void Pages::keep_files(LiveSlice& slice) {
  slice.control_file = runtime_.control_file(slice.name());
  slice.control_reader = runtime_.control_descriptor(slice.name());
}

// Passes all pages to the fd store. Returns whether this succeeded.
bool Pages::hold_all(const Slices& slices) {
  bool held = true;
  for (const auto& [id, slice] : slices) {
    hold_report(*slice);
    if (!holds_controls_) continue;
    held &= fd_store_.hold(control_key(slice->name()), slice->control_file) &&
            fd_store_.hold(reader_key(slice->name()), slice->control_reader);
  }
  return held;
}

Outcome<bool> Pages::restore(os::Loop& loop, const Slices& slices) {
  if (runtime_.is_present()) return false;
  auto fresh = RuntimeDir::open(runtime_.path());
  if (!fresh) return tl::unexpected(fresh.error());
  auto fd_store =
      FdStore::reach(runtime_.path());  // A new fd store, because the old one has lost its socket and ends.
  if (!fd_store) return tl::unexpected(fd_store.error());
  loop.forget(fd_store_.fd());
  fd_store_ = std::move(*fd_store);
  runtime_ = std::move(*fresh);
  watch_fd_store(loop, slices);
  holds_controls_ = true;
  if (!hold_all(slices)) os::log::warning("cannot pass the control pages to the fd store");
  for (const auto& [id, slice] : slices) write_state(*slice);
  return true;
}

void Pages::watch_fd_store(os::Loop& loop, const Slices& slices) {
  loop.watch(fd_store_.fd(), EPOLLIN, [this, &loop, &slices](uint32_t) {
    loop.forget(fd_store_.fd());
    os::log::warning("the fd store ended and is being restarted");
    auto fd_store = FdStore::reach(runtime_.path());
    if (!fd_store) {
      os::log::error("{}", fd_store.error().message);
      loop.after(os::second, [this, &loop, &slices] { watch_fd_store(loop, slices); });
      return;
    }
    fd_store_ = std::move(*fd_store);
    hold_all(slices);
    watch_fd_store(loop, slices);
  });
}

}  // namespace carve::node
