// `carve devices`: prints each device's memory: native, reserved, usable, granted and free.
#include "base/bytes.h"
#include "base/share.h"
#include "cli/messages.h"
#include "cli/output_format.h"
#include "cli/verbs.h"
#include "wire/api/device.h"
#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

// Returns "70%", "100% tight" or "120% over-committed".
std::string granted_share(const api::Device& d) {
  const std::string share = d.share_granted_bp == 0 ? "0%" : text(Share{d.share_granted_bp}).c_str();
  return d.commitment == Commitment::normal ? share : fmt::format("{} {}", share, text(d.commitment));
}

std::string reading(std::optional<uint32_t> value, const char* unit) {
  return value ? fmt::format("{} {}", *value, unit) : "-";
}

// Returns "62 W of 150 W".
std::string power(const DeviceReadings& r) {
  if (!r.power_milliwatts) return "-";
  const std::string now = fmt::format("{} W", *r.power_milliwatts / 1000);
  return r.power_limit_milliwatts ? fmt::format("{} of {} W", now, *r.power_limit_milliwatts / 1000) : now;
}

void print(const api::DeviceList& list, const OutputOptions& output) {
  const bool wide = parse_output_format(output.format)->kind == OutputFormat::Kind::wide;
  std::vector<std::string> heading{"DEVICE", "NAME",    "NATIVE", "RESERVED", "USABLE", "GRANTED",
                                   "FREE",   "COMPUTE", "SLICES", "POLICY",   "HEALTH"};
  if (wide)
    heading.insert(heading.end(), {"IN USE", "OUTSIDE", "CONTEXT", "SHARES", "IDLE", "SWITCHES", "UTIL",
                                   "TEMP", "POWER", "CLOCK", "PCI", "UUID"});
  std::vector<std::vector<std::string>> rows;
  for (const api::Device& d : list.devices) {
    const auto size = [](uint64_t bytes) { return std::string(text(Bytes{bytes})); };
    std::vector<std::string> row{
        std::to_string(d.index),
        d.name + (d.simulated ? " (simulated)" : ""),
        size(d.native_bytes),
        size(d.reserved_bytes),
        size(d.usable_bytes),
        d.exclusive_to.empty() ? size(d.granted_bytes) : "all, to " + d.exclusive_to,
        size(d.free_bytes),
        granted_share(d),
        fmt::format("{}/{}", d.slices, d.max_slices),
        fmt::format("{}{}", text(d.policy.effective.value_or(d.policy.desired)),
                    d.policy.blocked_by.empty() ? "" : " *"),
        d.mode == DeviceMode::whole ? message(d.health) : fmt::format("{} mode", text(d.mode))};
    if (wide)
      row.insert(
          row.end(),
          {size(d.used_bytes), size(d.used_outside_slices_bytes), size(d.context_bytes),
           d.compute ? message(*d.compute) : "-", d.arbitration ? percent(d.arbitration->idle_1s_bp) : "-",
           d.arbitration ? fmt::format("{} of {}", d.arbitration->switches, span(d.arbitration->switch_ns))
                         : "-",
           fmt::format("{}%", d.utilization_percent), reading(d.readings.temperature_celsius, "C"),
           power(d.readings), reading(d.readings.sm_clock_mhz, "MHz"), d.pci_id.empty() ? "-" : d.pci_id,
           d.uuid});
    rows.push_back(std::move(row));
  }
  fmt::print("{}", listed(output, heading, rows));
  for (const api::Device& d : list.devices)
    if (!d.policy.blocked_by.empty())
      fmt::print("* device {}: policy {} takes effect when these slices have ended: {}\n", d.index,
                 text(d.policy.desired), fmt::join(d.policy.blocked_by, ", "));
  for (const api::Device& d : list.devices)
    if (d.mode != DeviceMode::whole)
      fmt::print("device {}: in {} mode, so it is not offered for slices; see carve doctor\n", d.index,
                 text(d.mode));
  for (const api::Device& d : list.devices)
    for (const std::string& process : d.unmanaged_processes)
      fmt::print("device {}: {}\n", d.index, harmless(process));
}

}  // namespace

void add_devices(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "devices", "List the devices with their native, reserved, usable, granted and free memory");
  auto output = std::make_shared<OutputOptions>();
  add_output_options(verb, *output);
  verb->footer("  carve devices -o custom-columns=DEVICE:.index,FREE:.free_bytes");
  verb->callback([&context, output] {
    answered(context, context.agent().devices(), [&](const auto& list) {
      auto json = api::parse(api::write(list));
      const Listing listing{.list_key = "devices", .name = [](const api::Json& device) {
                              return fmt::format("device/{}", device.value("index", 0u));
                            }};
      if (!json || print_document(context, *output, *json, listing)) return;
      // The table follows the order of the sorted document.
      if (const auto sorted = api::read<api::DeviceList>(json->dump(), api::Reading::lenient))
        print(*sorted, *output);
    });
  });
}

}  // namespace carve::cli
