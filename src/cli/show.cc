// `carve show NAME`: everything about one slice, and what happened to it.
#include "base/bytes.h"
#include "base/share.h"
#include "cli/verbs.h"

namespace carve::cli {
namespace {

void print(const api::Slice& s) {
  const auto row = [](const char* name, const std::string& value) { fmt::print("{:<12} {}\n", name, value); };
  row("name", s.name);
  row("state", s.ended_because.empty() ? s.state : s.state + ": " + s.ended_because);
  if (!s.command.empty()) row("command", harmless(s.command));
  row("owner", fmt::format("uid {}", s.owner_uid));
  row("created", clock_text(s.created_ns));
  if (s.ended_ns != 0) row("ended", clock_text(s.ended_ns));
  row("kind", s.exclusive          ? "whole devices, exclusively"
              : s.parts.size() > 1 ? "equal parts of several devices"
                                   : "part of one device");
  row("isolation", s.isolation == s.enforcement
                       ? s.isolation
                       : fmt::format("{} (enforced by: {})", s.isolation, s.enforcement));
  row("policy",
      s.policy + (s.latency ? ", latency class" : "") + (s.compute.empty() ? "" : " (" + s.compute + ")"));
  for (const api::SlicePart& p : s.parts)
    if (p.spill_bytes != 0)
      row("host memory",
          fmt::format("{} of {} beyond the quota of device {}", text(Bytes{p.spilled_bytes}).c_str(),
                      text(Bytes{p.spill_bytes}).c_str(), p.index));
  if (s.container) row("container", fmt::format("--device carve.dev/slice={}", s.name));
  std::vector<std::vector<std::string>> rows;
  for (const api::SlicePart& p : s.parts)
    rows.push_back({std::to_string(p.index), p.device_name, std::string(text(Bytes{p.quota_bytes})),
                    std::string(text(Bytes{p.charged_bytes})), std::string(text(Bytes{p.peak_bytes})),
                    std::string(text(Bytes{p.used_bytes})),
                    p.share_bp == 0 ? "-" : text(Share{p.share_bp}).c_str(), p.uuid});
  fmt::print("\n{}",
             table({"DEVICE", "NAME", "QUOTA", "CHARGED", "PEAK", "DRIVER SAYS", "COMPUTE", "UUID"}, rows));
  if (!s.processes.empty()) {
    rows.clear();
    for (const api::Process& p : s.processes)
      rows.push_back({std::to_string(p.pid),
                      p.inner_pid == p.pid || p.inner_pid == 0 ? "-" : std::to_string(p.inner_pid),
                      std::string(text(Bytes{p.used_bytes})),
                      p.attached          ? "attached"
                      : p.used_bytes != 0 ? "NOT REGISTERED"
                                          : "no CUDA yet",
                      cut(harmless(p.command), 60)});
    fmt::print("\n{}", table({"PID", "INNER PID", "MEMORY", "LIBRARY", "COMMAND"}, rows));
  }
  if (!s.events.empty()) {
    fmt::print("\n");
    for (const api::Event& e : s.events) fmt::print("{}  {}\n", clock_text(e.time_ns), harmless(e.text));
  }
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("show", "Show one slice: quota, use, processes, what happened");
  auto name = std::make_shared<std::string>();
  verb->add_option("NAME", *name, "The slice")->required();
  add_output(verb, context);
  verb->callback([&context, name] {
    answered(context, context.client().get<api::Slice>("/v1/slices/" + *name), [&](const auto& slice) {
      if (context.json())
        print_json(slice);
      else
        print(slice);
    });
  });
}

}  // namespace carve::cli
