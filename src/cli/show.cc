// `carve show NAME`: prints one slice and its events; with --history, also its terms over time.
#include "base/bytes.h"
#include "base/share.h"
#include "cli/messages.h"
#include "cli/verbs.h"
#include "wire/api/event.h"
#include "wire/api/slice.h"

namespace carve::cli {
namespace {

// Prints the granted and the achieved share on each arbitrated device.
void print_compute(const api::Slice& s) {
  std::vector<std::vector<std::string>> rows;
  for (const api::SlicePart& p : s.parts) {
    if (!p.compute) continue;
    const api::PartCompute& c = *p.compute;
    rows.push_back({std::to_string(p.index), percent(c.granted_bp), percent(c.achieved_1s_bp),
                    percent(c.achieved_60s_bp), span(c.busy_ns), span(c.waiting_ns), span(c.throttled_ns),
                    span(c.burst_ns), fmt::format("{} / {}", span(c.wait_p50_ns), span(c.wait_p99_ns)),
                    std::to_string(c.leases), std::to_string(c.overruns)});
  }
  if (rows.empty()) return;
  fmt::print("\n{}", table({"DEVICE", "GRANTED", "ACHIEVED 1s", "ACHIEVED 1m", "BUSY", "WAITED", "THROTTLED",
                            "BURST", "WAIT p50/p99", "LEASES", "OVERRUNS"},
                           rows));
  if (const auto& c = s.parts.front().compute;
      c && c->copied_to_device_bytes + c->copied_to_host_bytes + c->copied_on_device_bytes != 0)
    fmt::print("copied       {} to the device, {} to the host, {} on the device (not charged as compute)\n",
               text(Bytes{c->copied_to_device_bytes}).c_str(), text(Bytes{c->copied_to_host_bytes}).c_str(),
               text(Bytes{c->copied_on_device_bytes}).c_str());
}

// Prints the periods of the slice: its memory and its share, and when they were in force.
void print_history(const api::Slice& s) {
  std::vector<std::vector<std::string>> rows;
  for (const api::Period& p : s.history) {
    const uint64_t to = p.to_ns != 0 ? p.to_ns : utc_now_ns();
    rows.push_back(
        {clock_text(p.from_ns), p.to_ns != 0 ? clock_text(p.to_ns) : "now", age(to - std::min(to, p.from_ns)),
         // If the parts differ, their amounts never change.
         has_equal_parts(s) ? std::string(text(Bytes{p.memory_bytes})) : quotas_text(s),
         !has_equal_parts(s) ? shares_text(s)
         : p.share_bp == 0   ? "-"
                             : text(Share{p.share_bp}).c_str(),
         fmt::format("{}{}", text(p.policy), p.latency_class == LatencyClass::latency ? ", latency" : ""),
         std::string(text(p.isolation))});
  }
  fmt::print("{}", table({"FROM", "TO", "FOR", "MEMORY", "COMPUTE", "POLICY", "ISOLATION"}, rows));
}

// Returns the requested isolation and, for a live slice, what enforces it.
std::string isolation_of(const api::Slice& s) {
  if (s.isolation == Isolation::none || s.state == SliceState::ended) return std::string(text(s.isolation));
  std::string out = fmt::format("memory (enforced by: {})", enforcement_text(s.enforcement.memory));
  const Enforcement& compute = s.enforcement.compute;
  if (s.isolation != Isolation::memory_and_compute)
    return out + (compute.reason.empty()
                      ? ""
                      : fmt::format("; compute: {}: {}", compute.reason, fmt::join(compute.by, ", ")));
  return out + fmt::format(" + compute ({}{})", compute.enforced() ? "enforced by: " : "", message(compute));
}

// Returns the time limit with the time that is left: "2h00m, 1h58m left".
std::string limit_text(const api::TimeLimit& limit) {
  const auto text = [](uint64_t seconds) { return age(seconds * 1'000'000'000); };
  return fmt::format("{}, {}", text(limit.seconds),
                     limit.left_seconds == 0 ? "reached" : text(limit.left_seconds) + " left");
}

// Prints the slice. `limit` has 0 s if the slice has no time limit.
void print(const api::Slice& s, const api::TimeLimit& limit) {
  const auto row = [](const char* name, const std::string& value) { fmt::print("{:<12} {}\n", name, value); };
  row("name", s.name);
  row("state", fmt::format("{}{}{}", text(s.state), s.ended_because.empty() ? "" : ": ", s.ended_because));
  if (!s.command.empty()) row("command", harmless(s.command));
  row("owner", fmt::format("uid {}", s.owner_uid));
  if (!s.account.empty()) row("account", harmless(s.account));
  for (const auto& [key, value] : s.labels)
    row("label", fmt::format("{}={}", harmless(key), harmless(value)));
  row("created", clock_text(s.created_ns));
  if (s.ended_ns != 0) row("ended", clock_text(s.ended_ns));
  if (limit.seconds != 0) row("limit", limit_text(limit));
  row("kind", s.exclusive           ? "whole devices, exclusively"
              : !has_equal_parts(s) ? "different parts of several devices"
              : s.parts.size() > 1  ? "equal parts of several devices"
                                    : "part of one device");
  for (const XidCount& xid : s.xids)
    row("error", fmt::format("{}, {} time{}", xid_text(xid.code), xid.count, xid.count == 1 ? "" : "s"));
  for (const Violation& found : s.violations)
    row("violation", fmt::format("{}, {} time{}: {}", text(found.kind), found.count,
                                 found.count == 1 ? "" : "s", harmless(found.text)));
  if (s.refused_ns != 0) row("refused", "memory over the quota, last at " + clock_text(s.refused_ns));
  if (s.holder) row("holder", text(*s.holder));
  if (s.holder && s.holder->pod) row("pod uid", s.holder->pod->uid);
  if (!s.application.empty()) row("application", harmless(s.application));
  row("isolation", isolation_of(s));
  row("policy",
      fmt::format("{}{}", text(s.policy), s.latency_class == LatencyClass::latency ? ", latency class" : ""));
  for (const api::SlicePart& p : s.parts)
    if (p.spill_bytes != 0)
      row("spill", fmt::format("device {}: {} of {} used", p.index, text(Bytes{p.spilled_bytes}).c_str(),
                               text(Bytes{p.spill_bytes}).c_str()));
  if (s.memory_units.count != 0)
    row("memory",
        fmt::format("{} x {} = {}", s.memory_units.count, text(size_of(s.memory_units.unit)).c_str(),
                    text(Bytes{s.memory_units.count * size_of(s.memory_units.unit).count}).c_str()));
  if (s.lifetime == Lifetime::until_deleted)
    row("container", fmt::format("--device carve.dev/slice={}", s.name));
  std::vector<std::vector<std::string>> rows;
  for (const api::SlicePart& p : s.parts)
    rows.push_back({std::to_string(p.index), p.device_name, std::string(text(Bytes{p.quota_bytes})),
                    std::string(text(Bytes{p.charged_bytes})), std::string(text(Bytes{p.peak_bytes})),
                    std::string(text(Bytes{p.used_bytes})),
                    p.share_bp == 0 ? "-" : text(Share{p.share_bp}).c_str(), p.uuid});
  fmt::print("\n{}",
             table({"DEVICE", "NAME", "QUOTA", "CHARGED", "PEAK", "DRIVER", "COMPUTE", "UUID"}, rows));
  print_compute(s);
  if (!s.processes.empty()) {
    rows.clear();
    for (const api::Process& p : s.processes)
      rows.push_back({std::to_string(p.pid),
                      p.inner_pid == p.pid || p.inner_pid == 0 ? "-" : std::to_string(p.inner_pid),
                      std::string(text(Bytes{p.used_bytes})),
                      p.attached          ? "attached"
                      : p.used_bytes != 0 ? "not attached"
                                          : "no CUDA yet",
                      cut(harmless(p.command), 60)});
    fmt::print("\n{}", table({"PID", "INNER PID", "MEMORY", "LIBRARY", "COMMAND"}, rows));
  }
  if (!s.events.empty()) {
    fmt::print("\n");
    for (const api::Event& e : s.events) fmt::print("{}  {}\n", clock_text(e.time_ns), harmless(e.text));
  }
}

// Prints the slice with its time limit, which an ended slice does not have.
void print_whole(const client::AgentClient& agent, const api::Slice& slice) {
  const auto limit = agent.time_limit(slice.name);
  print(slice, limit && slice.ended_ns == 0 ? *limit : api::TimeLimit());
}

}  // namespace

void show_slice(Context& context, const std::string& name) {
  const client::AgentClient agent = context.agent();
  answered(context, agent.slice(name), [&](const api::Slice& slice) { print_whole(agent, slice); });
}

void add_show(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("show", "Show one slice: quota, use, processes, events");
  auto name = std::make_shared<std::string>();
  verb->add_option("NAME", *name, "The slice")->required();
  auto history = std::make_shared<bool>(false);
  verb->add_flag("--history", *history, "Show the slice's terms over time, with every change");
  add_output(verb, context);
  verb->callback([&context, name, history] {
    const client::AgentClient agent = context.agent();
    answered(context, agent.slice(*name), [&](const auto& slice) {
      if (context.json())
        print_json(slice);
      else if (*history)
        print_history(slice);
      else
        print_whole(agent, slice);
    });
  });
}

}  // namespace carve::cli
