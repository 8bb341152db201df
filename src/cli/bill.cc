// `carve bill`, and `carve get|describe tariffs|budgets`.
#include "cli/bill.h"

#include <algorithm>
#include <cctype>

#include "base/bytes.h"
#include "base/share.h"
#include "cli/amounts.h"
#include "cli/period.h"
#include "objects/budget_object.h"
#include "objects/tariff_object.h"
#include "wire/api/bill.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

std::vector<std::string> row_of(const objects::Tariff& tariff) {
  const objects::TariffSpec& spec = tariff.spec;
  return {harmless(tariff.metadata.name), harmless(spec.from),        harmless(spec.price_per_gpu_hour),
          harmless(spec.currency),        harmless(spec.granularity), harmless(spec.minimum)};
}

std::vector<std::string> row_of(const objects::Budget& budget) {
  const objects::BudgetSpec& spec = budget.spec;
  const bool counts_hours = !spec.gpu_hours.empty();
  return {harmless(budget.metadata.name),
          harmless(spec.account),
          counts_hours ? harmless(spec.gpu_hours) + " GPU-hours" : harmless(spec.amount),
          budget.status.used.empty() ? "-" : shown_amount(budget.status.used),
          fmt::format("{}%", budget.status.percent),
          harmless(spec.then),
          budget.status.holds ? "jobs wait" : "-"};
}

std::string upper(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::toupper(c); });
  return harmless(word);
}

void print(const api::Bill& bill) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const api::BillSum& sum) {
    const std::string key = sum.key.empty() ? "\"\"" : harmless(sum.key);
    rows.push_back({key, fmt::format("{}", sum.lines), shown_amount(sum.gpu_hours),
                    shown_amount(sum.used_gpu_hours), shown_amount(sum.amount),
                    sum.unpriced_seconds == "0.000000" ? "-" : shown_amount(sum.unpriced_seconds) + " s"});
  };
  for (const api::BillSum& sum : bill.items) add(sum);
  add(bill.total);
  const std::string amount = bill.currency.empty() ? "AMOUNT" : "AMOUNT (" + harmless(bill.currency) + ")";
  fmt::print("{}\n{}", shown_period(bill.from, bill.to),
             table({upper(bill.by), "LINES", "GPU-HOURS", "USED", amount, "NO PRICE"}, rows));
}

std::string text_of(Bytes bytes) { return std::string(text(bytes)); }

// Returns the smaller slice that would have been enough: "1024 MiB, 15%".
std::string smaller_of(const api::BillLine& line) {
  const std::string memory = text_of(Bytes{line.smaller_memory_bytes});
  if (line.smaller_share_bp == 0) return memory;
  return fmt::format("{}, {}", memory, std::string_view(text(Share{line.smaller_share_bp})));
}

void print_idle(const api::Bill& bill) {
  std::vector<std::vector<std::string>> rows;
  for (const api::BillLine& line : bill.lines)
    rows.push_back({harmless(line.pod), harmless(line.account), shown_amount(line.gpu_hours),
                    shown_amount(line.used_gpu_hours), shown_amount(line.amount),
                    text_of(Bytes{line.memory_bytes}), text_of(Bytes{line.peak_bytes}), smaller_of(line),
                    shown_amount(line.smaller_gpu_hours), shown_amount(line.smaller_amount),
                    harmless(line.id)});
  if (rows.empty()) return fmt::print("No slice was granted more than it used.\n");
  fmt::print("{}", table({"SLICE", "ACCOUNT", "GPU-HOURS", "USED", "AMOUNT", "MEMORY", "PEAK",
                          "SMALLER SLICE", "ITS GPU-HOURS", "ITS AMOUNT", "LINE"},
                         rows));
}

std::string when(const api::BillLine& line) {
  return fmt::format("{} to {}{}", harmless(line.from), harmless(line.to), line.open ? " (open)" : "");
}

void print_lines(const api::Bill& bill) {
  std::vector<std::vector<std::string>> rows;
  for (const api::BillLine& line : bill.lines)
    rows.push_back({harmless(line.id), harmless(line.pod), harmless(line.account), when(line),
                    shown_amount(line.gpu_hours), shown_amount(line.used_gpu_hours),
                    line.unpriced.empty() ? shown_amount(line.amount) : "-"});
  if (rows.empty()) return fmt::print("No slice was granted in this period.\n");
  fmt::print("{}", table({"LINE", "SLICE", "ACCOUNT", "TIME", "GPU-HOURS", "USED", "AMOUNT"}, rows));
}

struct BillOptions {
  std::string by, selector, account, output = "table";
  Period period;
  bool idle = false, lines = false;
};

// Returns the query, which begins with '?'.
std::string query_of(const BillOptions& o, const Window& window) {
  std::string out;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty())
      out += fmt::format("{}{}={}", out.empty() ? '?' : '&', name, api::percent_encoded(value));
  };
  add("by", o.by);
  add("from", window.from);
  add("to", window.to);
  add("account", o.account);
  add("labelSelector", o.selector);
  add("idle", o.idle ? "true" : "");
  add("lines", o.lines ? "true" : "");
  return out;
}

void reject_usage(Context& context, const std::string& message) { context.refuse(message); }

// Returns the price without trailing zeros, but with at least two decimals: "0.30".
std::string price_text(std::string price) {
  const size_t least = price.find('.') + 3;
  while (price.size() > least && price.back() == '0') price.pop_back();
  return harmless(price);
}

// Returns how the amount follows from the GPU-hours: "0.003333 GPU-hours x 0.30 EUR = 0.001000 EUR".
std::string amount_formula(const api::BillLine& line, const std::string& currency) {
  if (!line.unpriced.empty()) return harmless(line.unpriced);
  return fmt::format("{} GPU-hours x {} {} = {} {}", harmless(line.gpu_hours), price_text(line.price),
                     harmless(currency), harmless(line.amount), harmless(currency));
}

// Returns what was granted: "4 GiB, 30%".
std::string terms_of(const api::BillLine& line) {
  const std::string memory = text_of(Bytes{line.memory_bytes});
  return line.share_bp == 0 ? memory
                            : fmt::format("{}, {}", memory, std::string_view(text(Share{line.share_bp})));
}

// Returns the rows about who held the slice.
std::string holder_rows(const api::BillLine& line) {
  const size_t slash = line.pod.find('/');  // A slice's name has none.
  if (slash == std::string::npos)
    return fmt::format("  slice      {} of account {}\n", harmless(line.pod), harmless(line.account));
  return fmt::format("  pod        {} in namespace {}, container {}\n  account    {}\n",
                     harmless(line.pod.substr(0, slash)), harmless(line.namespace_),
                     harmless(line.pod.substr(slash + 1)), harmless(line.account));
}

void print_explained(const api::Bill& bill) {
  for (const api::BillLine& line : bill.lines)
    fmt::print(
        "{}\n{}  device     {} ({})\n  node       {}\n  granted    {}\n  GPU-hours  {}\n  amount     {}\n",
        when(line), holder_rows(line), harmless(line.device), harmless(line.model), harmless(line.node),
        terms_of(line), harmless(line.formula), amount_formula(line, bill.currency));
}

void add_bill_explain(CLI::App* bill, Context& context) {
  CLI::App* verb = bill->add_subcommand("explain", "Show how the amount of a line is computed");
  const auto line = std::make_shared<std::string>();
  const auto o = std::make_shared<BillOptions>();
  verb->add_option("LINE", *line, "Id of the line, from carve bill --lines or --idle")->required();
  add_period(verb, o->period);
  add_output(verb, context);
  verb->footer("  carve bill explain n1.7.0");
  verb->callback([&context, line, o] {
    const auto window = window_of(o->period);
    if (!window) return reject_usage(context, window.error().message);
    const std::string target = "/v1/bills/lines/" + api::percent_encoded(*line) + query_of(*o, *window);
    answered(context, context.controller().get<api::Bill>(target),
             [&](const auto& shown) { context.json() ? print_json(shown) : print_explained(shown); });
  });
}

}  // namespace

ObjectCells price_heading(objects::Kind kind) {
  if (kind == objects::Kind::tariff)
    return {{"NAME", "FROM", "PRICE PER GPU-HOUR", "CURRENCY", "GRANULARITY", "MINIMUM"}, {}};
  return {{"NAME", "ACCOUNT", "LIMIT", "USED", "PERCENT", "THEN", "HOLDS"}, {}};
}

Result<ObjectCells, std::string> price_cells(objects::Kind kind, const std::string& json) {
  if (kind == objects::Kind::tariff) {
    const auto tariff = api::read<objects::Tariff>(json, api::Reading::lenient);
    if (!tariff) return tl::unexpected(tariff.error());
    return ObjectCells{row_of(*tariff), {}};
  }
  const auto budget = api::read<objects::Budget>(json, api::Reading::lenient);
  if (!budget) return tl::unexpected(budget.error());
  return ObjectCells{row_of(*budget), {}};
}

void describe_price(Context& context, const ObjectName& object) {
  answered(context, context.controller().text(object_path(object)), [&](const auto& json) {
    const auto cells = price_cells(object.kind, json);
    if (!cells) {
      complain({.title = "object", .detail = "cannot read the controller's response: " + cells.error()});
      context.status = failed_status;
      return;
    }
    fmt::print("{}", table(price_heading(object.kind).narrow, {cells->narrow}));
    if (object.kind != objects::Kind::tariff) return;
    const auto tariff = api::read<objects::Tariff>(json, api::Reading::lenient);
    if (!tariff) return;
    for (const objects::TariffUnits& units : tariff->spec.units)
      fmt::print("{}: {} GPU-hour units per hour\n", harmless(units.model), harmless(units.gpu_hour_units));
  });
}

// Returns why the options exclude each other, or an empty string.
std::string contradiction(const CLI::App& verb, const BillOptions& o) {
  const char* lines = o.idle ? "--idle" : o.lines ? "--lines" : nullptr;
  if (verb.count("--by") != 0 && lines != nullptr && o.output != "json")
    return fmt::format("--by prints sums, but {} prints lines; use only one of them", lines);
  if (o.idle && o.output == "csv") return "--idle does not support csv; use -o json";
  if (verb.count("--selector") != 0 && o.selector.empty())
    return "-l is empty; use -l KEY=VALUE, or leave it out";
  if (verb.count("--account") != 0 && o.account.empty())
    return "--account is empty; give an account, or leave it out";
  return "";
}

// Returns what is wrong with a value of --by; empty if it is correct.
std::string check_grouping(const std::string& by) {
  constexpr std::string_view groupings[] = {"account", "queue",     "job",  "service",
                                            "device",  "namespace", "node", "user"};
  constexpr std::string_view label = "label:";
  if (std::ranges::find(groupings, by) != std::end(groupings)) return "";
  if (by.starts_with(label) && by.size() > label.size()) return "";
  return fmt::format("'{}': must be {} or label:KEY, as in label:team", by, fmt::join(groupings, ", "));
}

void add_bill(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("bill", "Show the cost of slices in a period");
  const auto o = std::make_shared<BillOptions>();
  verb->add_option(
          "--by", o->by,
          "Group by account, user, queue, job, service, namespace, node, device or label:KEY [account]")
      ->check(check_grouping);
  add_period(verb, o->period);
  verb->add_option("--account", o->account, "Only slices of this account");
  verb->add_option("-l,--selector", o->selector,
                   "Only slices with matching labels, such as team=a,env!=test");
  verb->add_flag("--idle", o->idle,
                 "Print the slices that were granted more than they used, and the cost of smaller ones");
  verb->add_flag("--lines", o->lines, "Print each line instead of the sums; -o json prints both");
  verb->add_option("-o,--output", o->output, "Output format; csv prints the lines, or the sums with --by")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
  verb->footer("  carve bill --month 2026-11 --by job\n  carve bill -l team=a --by label:env");
  add_bill_explain(verb, context);
  verb->callback([&context, verb, o] {
    if (!verb->get_subcommands().empty()) return;
    if (const std::string wrong = contradiction(*verb, *o); !wrong.empty())
      return reject_usage(context, wrong);
    const auto window = window_of(o->period);
    if (!window) return reject_usage(context, window.error().message);
    const std::string target = "/v1/bills" + query_of(*o, *window);
    const client::Client controller = context.controller();
    if (o->output == "csv")
      return answered(
          context,
          controller.text(fmt::format("{}{}format=csv", target, target.ends_with("bills") ? '?' : '&')),
          [](const auto& text) { std::fwrite(text.data(), 1, text.size(), stdout); });
    answered(context, controller.get<api::Bill>(target), [&](const auto& bill) {
      if (o->output == "json") return print_json(bill);
      if (o->idle) return print_idle(bill);
      o->lines ? print_lines(bill) : print(bill);
    });
  });
}

}  // namespace carve::cli
