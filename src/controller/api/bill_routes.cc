#include "controller/api/bill_routes.h"

#include <fmt/ranges.h>

#include <map>

#include "controller/api/label_selector.h"
#include "controller/api/planning.h"
#include "controller/api/query.h"
#include "controller/billing/allocation_report.h"
#include "controller/objects/present_tariffs.h"
#include "core/label.h"
#include "core/utc.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

using objects::Kind;

// Returns all tariffs; those in the submissions replace the current ones.
Outcome<bill::Tariffs> tariffs_with(const Call& call, const std::vector<Submission>& submissions) {
  std::map<std::string, bill::Tariff> by_name;
  for (const auto& object : call.context.objects.list(Kind::tariff))
    by_name.insert_or_assign(object->key.name, tariff_of(object->spec));
  for (const Submission& submission : submissions)
    if (submission.kind == Kind::tariff)
      by_name.insert_or_assign(submission.metadata.name, tariff_of(submission.spec));
  std::vector<bill::Tariff> all;
  for (auto& [name, tariff] : by_name) all.push_back(std::move(tariff));
  return bill::Tariffs::from(std::move(all));
}

Outcome<bool> yes_or_no(const std::string& what, const std::string& word) {
  if (word == "true") return true;
  if (word == "false" || word.empty()) return false;
  return failure(FailureKind::invalid_argument, "{} '{}': must be true or false", what,
                 word.substr(0, max_shown_bytes));
}

using Parameters = std::map<std::string, std::string>;

Outcome<BillQuery> bill_query(const Call& call, Parameters& given) {
  const UtcMonth month = month_of(call.context.views.now_ns());
  BillQuery out{.window = {.from = month.from_ns, .to = month.to_ns}};
  for (const auto& [name, end] : {std::pair{"from", &out.window.from}, {"to", &out.window.to}})
    if (!given[name].empty()) {
      const auto moment = parse_utc(name, given[name]);
      if (!moment) return tl::unexpected(moment.error());
      *end = *moment;
    }
  if (given["to"].empty() && !given["from"].empty()) out.window.to = month_of(out.window.from).to_ns;
  if (out.window.from >= out.window.to)
    return failure(FailureKind::invalid_argument, "'from' ({}) must be before 'to' ({})",
                   os::rfc3339(out.window.from, os::Decimals::milliseconds),
                   os::rfc3339(out.window.to, os::Decimals::milliseconds));
  constexpr std::string_view label_prefix = "label:";
  if (const std::string& by = given["by"]; by.starts_with(label_prefix)) {
    out.by_label = by.substr(label_prefix.size());
    if (out.by_label.empty() || out.by_label.size() > max_label_bytes)
      return failure(FailureKind::invalid_argument, "by '{}': must be label:KEY with a key of 1 to {} bytes",
                     by.substr(0, max_shown_bytes), max_label_bytes);
  } else if (!by.empty()) {
    const auto known = parse<BillBy>(by);
    if (!known)
      return failure(FailureKind::invalid_argument, "by '{}': must be one of {}, or label:KEY",
                     by.substr(0, max_shown_bytes), fmt::join(Words<BillBy>::words, ", "));
    out.by = *known;
  }
  for (const auto& [name, is] : {std::pair{"lines", &out.with_lines}, {"idle", &out.only_idle}}) {
    const auto word = yes_or_no(name, given[name]);
    if (!word) return tl::unexpected(word.error());
    *is = *word;
  }
  out.account = given["account"];
  if (const std::string& text = given["labelSelector"]; !text.empty()) {
    auto selector = parse_label_selector(text);
    if (!selector) return tl::unexpected(selector.error());
    out.selects = [selector = std::move(*selector)](const UsageLabels& labels) {
      return selects(selector, labels);
    };
  }
  out.user_name = [&views = call.context.views](uint32_t uid) { return views.user_name(uid); };
  out.may_see = [caller = call.caller](const UsageRow& row) {
    return caller.may_see(row.owner_uid, row.account);
  };
  return out;
}

http::Response answered(const Call& call, BillQuery query, BillForm form) {
  query.with_lines |= form == BillForm::csv;
  return call.context.views.bill(std::move(query), present_tariffs(call.context.objects), form);
}

}  // namespace

http::Response get_bill(const Call& call) {
  auto given = parse_query(call.request.query,
                           {"from", "to", "by", "account", "labelSelector", "lines", "idle", "format"});
  if (!given) return refuse(given.error());
  auto query = bill_query(call, *given);
  if (!query) return refuse(query.error());
  const std::string* accept = call.request.headers.find("Accept");
  const std::string& format = (*given)["format"];
  if (!format.empty() && format != "json" && format != "csv")
    return refuse(FailureKind::invalid_argument,
                  fmt::format("format '{}': must be json or csv", format.substr(0, max_shown_bytes)));
  const bool is_csv =
      format.empty() ? accept != nullptr && accept->find("text/csv") != std::string::npos : format == "csv";
  const bool has_sums = !(*given)["by"].empty() && !query->with_lines && !query->only_idle;
  const BillForm csv = has_sums ? BillForm::csv_sums : BillForm::csv;
  return answered(call, std::move(*query), is_csv ? csv : BillForm::json);
}

http::Response get_bill_line(const Call& call) {
  auto given = parse_query(call.request.query, {"from", "to"});
  if (!given) return refuse(given.error());
  auto query = bill_query(call, *given);
  if (!query) return refuse(query.error());
  query->line = call.names[0];
  return answered(call, std::move(*query), BillForm::line);
}

http::Response get_allocations(const Call& call) {
  auto given = parse_query(call.request.query, {"from", "to", "by", "account", "labelSelector", "step"});
  if (!given) return refuse(given.error());
  auto query = bill_query(call, *given);
  if (!query) return refuse(query.error());
  const std::string& step = (*given)["step"];
  if (!step.empty() && step != "day")
    return refuse(FailureKind::invalid_argument,
                  fmt::format("step '{}': must be day", step.substr(0, max_shown_bytes)));
  query->by_day = !step.empty();
  if (constexpr int64_t day_ns = 86'400 * os::second;
      query->by_day && (query->window.to - query->window.from) / day_ns > int64_t{max_inventory_days})
    return refuse(FailureKind::invalid_argument,
                  fmt::format("step 'day': the period has more than {} days; choose a shorter one",
                              max_inventory_days));
  return answered(call, std::move(*query), BillForm::allocations);
}

std::optional<http::Response> refused_by_tariffs(const Call& call,
                                                 const std::vector<Submission>& submissions) {
  for (const Submission& submission : submissions) {
    if (submission.kind != Kind::tariff) continue;
    if (const auto valid = tariffs_with(call, submissions); !valid)
      return refuse(api::FieldErrors{{.field = "spec.from", .value = "", .message = valid.error().message}});
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace carve::controller
