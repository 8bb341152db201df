// `carve bill`, and `carve get|describe tariffs|budgets`.
#include "cli/bill.h"

#include <algorithm>
#include <cctype>

#include "base/bytes.h"
#include "base/share.h"
#include "cli/amounts.h"
#include "cli/object_output.h"
#include "wire/api/bill.h"
#include "wire/objects/budget_object.h"
#include "wire/objects/tariff_object.h"

namespace carve::cli {
namespace {

template <class T>
struct List {
  std::vector<T> items;
};

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
          budget.status.used.empty() ? "-" : in_cents(budget.status.used),
          fmt::format("{}%", budget.status.percent),
          harmless(spec.then),
          budget.status.holds ? "jobs wait" : "-"};
}

template <class T>
void print_prices(Context& context, const objects::KindText& kind, const std::string& json,
                  bool names_alone) {
  const auto list = api::read<List<T>>(json, api::Reading::lenient);
  if (!list) {
    complain({.title = "list", .detail = "the controller's answer cannot be read: " + list.error()});
    context.status = failed_status;
    return;
  }
  if (list->items.empty()) return fmt::print(stderr, "No {}. Create one: carve apply -f FILE\n", kind.plural);
  std::vector<std::vector<std::string>> rows;
  for (const T& item : list->items) {
    if (names_alone) fmt::print("{}/{}\n", kind.singular, harmless(item.metadata.name));
    rows.push_back(row_of(item));
  }
  if (!names_alone) fmt::print("{}", table(price_heading(kind.value), rows));
}

std::string upper(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::toupper(c); });
  return harmless(word);
}

// Returns the day of a moment at which it begins: "2026-11-01"; else the moment.
std::string day_or_moment(const std::string& moment) {
  constexpr size_t date_bytes = 10;
  const std::string_view time = std::string_view(moment).substr(std::min(date_bytes, moment.size()));
  const bool is_midnight = time.find_first_not_of("T0:.Z") == std::string_view::npos;
  return harmless(is_midnight ? moment.substr(0, date_bytes) : moment);
}

void print(const api::Bill& bill) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const api::BillSum& sum) {
    rows.push_back({harmless(sum.key), fmt::format("{}", sum.lines), in_cents(sum.gpu_hours),
                    in_cents(sum.used_gpu_hours), in_cents(sum.amount),
                    sum.unpriced_seconds == "0.000000" ? "-" : in_cents(sum.unpriced_seconds) + " s"});
  };
  for (const api::BillSum& sum : bill.items) add(sum);
  add(bill.total);
  const std::string amount = bill.currency.empty() ? "AMOUNT" : "AMOUNT (" + harmless(bill.currency) + ")";
  fmt::print("{} to {}\n{}", day_or_moment(bill.from), day_or_moment(bill.to),
             table({upper(bill.by), "LINES", "GPU-HOURS", "USED", amount, "NO PRICE"}, rows));
}

std::string text_of(Bytes bytes) { return std::string(text(bytes)); }

// Returns the slice that would have been enough: "1024 MiB, 15%".
std::string smaller_of(const api::BillLine& line) {
  const std::string memory = text_of(Bytes{line.smaller_memory_bytes});
  if (line.smaller_share_bp == 0) return memory;
  return fmt::format("{}, {}", memory, std::string_view(text(Share{line.smaller_share_bp})));
}

void print_idle(const api::Bill& bill) {
  std::vector<std::vector<std::string>> rows;
  for (const api::BillLine& line : bill.lines)
    rows.push_back({harmless(line.pod), harmless(line.account), in_cents(line.gpu_hours),
                    in_cents(line.used_gpu_hours), in_cents(line.amount), text_of(Bytes{line.memory_bytes}),
                    text_of(Bytes{line.peak_bytes}), smaller_of(line), in_cents(line.smaller_gpu_hours),
                    in_cents(line.smaller_amount), harmless(line.id)});
  if (rows.empty()) return fmt::print("No slice was granted more than it used.\n");
  fmt::print("{}", table({"POD", "ACCOUNT", "GPU-HOURS", "USED", "AMOUNT", "MEMORY", "PEAK", "SMALLER SLICE",
                          "ITS GPU-HOURS", "ITS AMOUNT", "LINE"},
                         rows));
}

std::string when(const api::BillLine& line) {
  return fmt::format("{} to {}{}", harmless(line.from), harmless(line.to), line.open ? " (runs)" : "");
}

void print_lines(const api::Bill& bill) {
  std::vector<std::vector<std::string>> rows;
  for (const api::BillLine& line : bill.lines)
    rows.push_back({harmless(line.id), harmless(line.pod), harmless(line.account), when(line),
                    in_cents(line.gpu_hours), in_cents(line.used_gpu_hours),
                    line.unpriced.empty() ? in_cents(line.amount) : "-"});
  if (rows.empty()) return fmt::print("No slice was granted in this time.\n");
  fmt::print("{}", table({"LINE", "POD", "ACCOUNT", "TIME", "GPU-HOURS", "USED", "AMOUNT"}, rows));
}

struct BillOptions {
  std::string by = "account", from, to, account, output = "table";
  bool idle = false, lines = false;
};

std::string query_of(const BillOptions& o) {
  std::string out = "?by=" + percent_encoded(o.by);
  for (const auto& [name, value] : {std::pair{"from", &o.from}, {"to", &o.to}, {"account", &o.account}})
    if (!value->empty()) out += fmt::format("&{}={}", name, percent_encoded(*value));
  if (o.idle) out += "&idle=true";
  if (o.lines) out += "&lines=true";
  return out;
}

void add_window(CLI::App* verb, const std::shared_ptr<BillOptions>& o) {
  verb->add_option("--from", o->from, "Begin: 2026-11-01 or 2026-11-01T08:30:00Z, UTC [this month]");
  verb->add_option("--to", o->to, "End, which does not count any more [the end of that month]");
}

void add_bill_explain(CLI::App* bill, Context& context) {
  CLI::App* verb = bill->add_subcommand("explain", "Show how the amount of a line follows");
  const auto line = std::make_shared<std::string>();
  const auto o = std::make_shared<BillOptions>();
  verb->add_option("LINE", *line, "Its id, as carve bill --lines and --idle show it")->required();
  add_window(verb, o);
  add_output(verb, context);
  verb->footer("  carve bill explain n1.7.0");
  verb->callback([&context, line, o] {
    std::string target = "/v1/bills/lines/" + percent_encoded(*line);
    char next = '?';
    for (const auto& [name, value] : {std::pair{"from", &o->from}, {"to", &o->to}})
      if (!value->empty())
        target += fmt::format("{}{}={}", std::exchange(next, '&'), name, percent_encoded(*value));
    answered(context, context.controller().get<api::Bill>(target), [&](const auto& shown) {
      if (context.json()) return print_json(shown);
      for (const api::BillLine& l : shown.lines) fmt::print("{}\n  {}\n", when(l), harmless(l.formula));
    });
  });
}

}  // namespace

const std::vector<std::string>& price_heading(objects::Kind kind) {
  static const std::vector<std::string> tariffs = {"NAME",     "FROM",        "PRICE PER GPU-HOUR",
                                                   "CURRENCY", "GRANULARITY", "MINIMUM"};
  static const std::vector<std::string> budgets = {"NAME",    "ACCOUNT", "LIMIT", "USED",
                                                   "PERCENT", "THEN",    "HOLDS"};
  return kind == objects::Kind::tariff ? tariffs : budgets;
}

Result<std::vector<std::string>, std::string> price_cells(objects::Kind kind, const std::string& json) {
  if (kind == objects::Kind::tariff) {
    const auto tariff = api::read<objects::Tariff>(json, api::Reading::lenient);
    if (!tariff) return tl::unexpected(tariff.error());
    return row_of(*tariff);
  }
  const auto budget = api::read<objects::Budget>(json, api::Reading::lenient);
  if (!budget) return tl::unexpected(budget.error());
  return row_of(*budget);
}

void get_prices(Context& context, const ObjectName& object, const std::string& output) {
  const client::Client controller = context.controller();
  const bool all = object.name.empty();
  const auto text =
      all ? whole_list(controller, list_path(object.kind)) : controller.text(object_path(object));
  answered(context, text, [&](const auto& json) {
    if (output == "json") return fmt::print("{}\n", api::indented(json));
    if (output == "yaml") return fmt::print("{}", yaml_of(json));
    const std::string list = all ? json : fmt::format("{{\"items\":[{}]}}", json);
    const objects::KindText& kind = objects::text_of(object.kind);
    if (object.kind == objects::Kind::tariff)
      print_prices<objects::Tariff>(context, kind, list, output == "name");
    else
      print_prices<objects::Budget>(context, kind, list, output == "name");
  });
}

void describe_price(Context& context, const ObjectName& object) {
  const client::Client controller = context.controller();
  answered(context, controller.text(object_path(object)), [&](const auto& json) {
    const objects::KindText& kind = objects::text_of(object.kind);
    const std::string list = fmt::format("{{\"items\":[{}]}}", json);
    if (object.kind == objects::Kind::budget)
      return print_prices<objects::Budget>(context, kind, list, false);
    print_prices<objects::Tariff>(context, kind, list, false);
    const auto tariff = api::read<objects::Tariff>(json, api::Reading::lenient);
    if (!tariff) return;
    for (const objects::TariffUnits& units : tariff->spec.units)
      fmt::print("{}: {} GPU-hour units an hour\n", harmless(units.model), harmless(units.gpu_hour_units));
  });
}

// Returns what is wrong with options that do not go together; empty: nothing.
std::string contradiction(const CLI::App& verb, const BillOptions& o) {
  const char* lines = o.idle ? "--idle" : o.lines ? "--lines" : o.output == "csv" ? "-o csv" : nullptr;
  if (verb.count("--by") != 0 && lines != nullptr && o.output != "json")
    return fmt::format("--by has sums, and {} has lines; leave out one of them", lines);
  if (o.idle && o.output == "csv") return "--idle has no csv; use -o json";
  if (verb.count("--account") != 0 && o.account.empty())
    return "--account is empty; name an account, or leave it out";
  return "";
}

void add_bill(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("bill", "Print what slices cost in a time");
  const auto o = std::make_shared<BillOptions>();
  verb->add_option("--by", o->by, "One row for each of these")
      ->check(CLI::IsMember({"account", "queue", "job", "service", "device"}))
      ->capture_default_str();
  add_window(verb, o);
  verb->add_option("--account", o->account, "Of this account alone");
  verb->add_flag("--idle", o->idle,
                 "The lines that were granted more than they used, and what a smaller slice would have cost");
  verb->add_flag("--lines", o->lines, "Each line instead of the sums; with -o json beside them");
  verb->add_option("-o,--output", o->output, "Form of the answer; csv has the lines")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
  verb->footer("  carve bill --by job --from 2026-11-01");
  add_bill_explain(verb, context);
  verb->callback([&context, verb, o] {
    if (!verb->get_subcommands().empty()) return;
    if (const std::string wrong = contradiction(*verb, *o); !wrong.empty()) {
      fmt::print(stderr, "carve: {}\n", wrong);
      context.status = usage_status;
      return;
    }
    const std::string target = "/v1/bills" + query_of(*o);
    const client::Client controller = context.controller();
    if (o->output == "csv")
      return answered(context, controller.text(target + "&format=csv"),
                      [](const auto& text) { std::fwrite(text.data(), 1, text.size(), stdout); });
    answered(context, controller.get<api::Bill>(target), [&](const auto& bill) {
      if (o->output == "json") return print_json(bill);
      if (o->idle) return print_idle(bill);
      o->lines ? print_lines(bill) : print(bill);
    });
  });
}

}  // namespace carve::cli
