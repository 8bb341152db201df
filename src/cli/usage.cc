// `carve usage`: who held how much in a period, and how much of it was used.
#include <algorithm>
#include <cctype>

#include "cli/amounts.h"
#include "cli/period.h"
#include "cli/verbs.h"
#include "core/utc.h"
#include "wire/api/allocations.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

constexpr uint64_t ns_per_second = 1'000'000'000;

struct UsageOptions {
  std::string by, account, selector, output = "table";
  Period period;
  bool days = false;
};

std::string usage_target(const UsageOptions& o, const Window& window) {
  std::string out = "/v1/allocations";
  char separator = '?';
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    out += fmt::format("{}{}={}", separator, name, api::percent_encoded(value));
    separator = '&';
  };
  add("by", o.by);
  add("from", window.from);
  add("to", window.to);
  add("account", o.account);
  add("labelSelector", o.selector);
  add("step", o.days ? "day" : "");
  return out;
}

std::string in_capitals(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::toupper(c); });
  return harmless(word);
}

// Returns how long ago the moment was: "4d07h"; "-" if there is none.
std::string age_of(const std::string& moment) {
  const auto at = parse_utc("since", moment);
  if (!at) return "-";
  const uint64_t now_ns = utc_now_ns();
  return age(now_ns - std::min(now_ns, static_cast<uint64_t>(*at)));
}

void print_sums(const api::Allocations& all) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const api::AllocationSum& sum) {
    rows.push_back({sum.key.empty() ? "\"\"" : harmless(sum.key), std::to_string(sum.begun),
                    std::to_string(sum.ended), std::to_string(sum.held), shown_amount(sum.gpu_hours),
                    shown_amount(sum.used_gpu_hours), shown_amount(sum.idle_gpu_hours),
                    shown_amount(sum.amount), age(sum.median_stay_seconds * ns_per_second),
                    age(sum.longest_stay_seconds * ns_per_second), age_of(sum.since)});
  };
  for (const api::AllocationSum& sum : all.items) add(sum);
  add(all.total);
  const std::string amount = all.currency.empty() ? "AMOUNT" : "AMOUNT (" + harmless(all.currency) + ")";
  fmt::print("{}\n{}", shown_period(all.from, all.to),
             table({in_capitals(all.by), "BEGUN", "ENDED", "HELD", "GPU-HOURS", "USED", "IDLE", amount,
                    "MEDIAN", "LONGEST", "OLDEST"},
                   rows));
}

void print_days(const api::Allocations& all) {
  std::vector<std::vector<std::string>> rows;
  for (const api::InventoryDay& day : all.days) {
    const double granted = std::strtod(day.granted_device_hours.c_str(), nullptr);
    const double usable =
        day.usable_device_hours ? std::strtod(day.usable_device_hours->c_str(), nullptr) : 0;
    rows.push_back({harmless(day.from.substr(0, day.from.find('T'))), shown_amount(day.granted_device_hours),
                    day.usable_device_hours ? shown_amount(*day.usable_device_hours) : "-",
                    usable > 0 ? fmt::format("{:.1f}%", 100 * granted / usable) : "-"});
  }
  fmt::print("{}", table({"DAY", "GRANTED DEVICE-HOURS", "USABLE", "GRANTED"}, rows));
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

void print_csv(const api::Allocations& all, bool days) {
  if (days) {
    fmt::print("from,to,granted_device_hours,usable_device_hours\r\n");
    for (const api::InventoryDay& day : all.days)
      fmt::print("{},{},{},{}\r\n", day.from, day.to, day.granted_device_hours,
                 day.usable_device_hours.value_or(""));
    return;
  }
  fmt::print(
      "{},allocations,begun,ended,held,gpu_hours,used_gpu_hours,idle_gpu_hours,amount,currency,"
      "median_stay_seconds,longest_stay_seconds,since\r\n",
      csv_text(all.by));
  for (const api::AllocationSum& s : all.items)
    fmt::print("{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n", csv_text(s.key), s.allocations, s.begun, s.ended,
               s.held, s.gpu_hours, s.used_gpu_hours, s.idle_gpu_hours, s.amount, csv_text(all.currency),
               s.median_stay_seconds, s.longest_stay_seconds, s.since);
}

void show_usage(Context& context, const UsageOptions& o) {
  const auto window = window_of(o.period);
  if (!window) {
    context.refuse(window.error().message);
    return;
  }
  answered(context, context.controller().get<api::Allocations>(usage_target(o, *window)),
           [&](const auto& all) {
             if (o.output == "json") return print_json(all);
             if (o.output == "csv") return print_csv(all, o.days);
             o.days ? print_days(all) : print_sums(all);
           });
}

}  // namespace

void add_usage(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("usage", "Show who held slices in a period, and how much was idle");
  const auto o = std::make_shared<UsageOptions>();
  verb->add_option(
      "--by", o->by,
      "Group by account, user, service, job, queue, namespace, node, device or label:KEY [account]");
  add_period(verb, o->period);
  verb->add_option("--account", o->account, "Only slices of this account");
  verb->add_option("-l,--selector", o->selector,
                   "Only slices with matching labels, such as team=a,env!=test");
  verb->add_flag("--days", o->days, "Print how much of the devices was granted on each day");
  verb->add_option("-o,--output", o->output, "Output format")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
  verb->footer("  carve usage --by user\n  carve usage --month 2026-11 --days");
  verb->callback([&context, o] { show_usage(context, *o); });
}

}  // namespace carve::cli
